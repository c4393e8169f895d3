use super::*;
use iolab_analysis::analysis::analyse;
use iolab_record::TargetKind;

const JOB: &str = r#"{"jobname": "NAME", "groupid": GROUP, "error": 0, "job options": {"rw": "randread", "bs": "BS", "numjobs": "2"},
 "job_runtime": 1000, "usr_cpu": 5.0, "sys_cpu": 20.0,
 "read": {"io_bytes": 4096000, "total_ios": 1000, "runtime": 1000, "clat_ns": {},
   "lat_ns": {"max": 9000, "mean": 1500.0, "N": 1000, "bins": {"1000": 900, "6000": 100}}},
 "write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {}, "lat_ns": {}}}"#;

fn job(name: &str, group: u32, bs: &str) -> String {
    JOB.replace("NAME", name)
        .replace("GROUP", &group.to_string())
        .replace("BS", bs)
}

fn report(jobs: &[String]) -> String {
    format!(
        r#"{{"fio version": "fio-3.33", "timestamp": 1700000000, "global options": {{"size": "64m", "direct": "1"}}, "jobs": [{}]}}"#,
        jobs.join(",")
    )
}

fn imported(text: &str) -> iolab_record::RunRecord {
    let folder = tempfile::tempdir().expect("a folder");
    let import = Import::parse(text).expect("a report");
    let path = folder.path().join("x.iolab");
    import
        .write(Path::new("a report.json"), NewFile::At(&path))
        .expect("written");
    iolab_runfile::read(&path).expect("a run file")
}

#[test]
fn jobs_of_fio_become_cells_and_clones_one_sample() {
    let jobs = [job("a", 0, "4k"), job("a", 0, "4k"), job("b", 1, "64k")];
    let record = imported(&report(&jobs));
    assert_eq!((record.cells.len(), record.samples.len()), (2, 2));
    assert_eq!(record.experiment.factors, ["bs"]);
    assert_eq!(record.run.target_kind, TargetKind::Imported);
    let analysis = analyse(&record);
    let cell = &analysis.cells[0];
    assert_eq!(
        (
            cell.n,
            cell.cell.spec.tool.name(),
            cell.cell.trial().threads
        ),
        (1, "fio", 2)
    );
    let throughput = cell.throughput.expect("one").median;
    assert!((throughput - 8.192).abs() < 1e-9, "{throughput}");
    assert_eq!(cell.latency.expect("bins").p50_ns, 1000.0);
    let served = cell.served.as_ref().expect("one");
    assert_eq!(served.unanimous(), Some(ServedBy::Unknown));
}

#[test]
fn a_job_without_words_leaves_the_others() {
    let jobs = [job("a", 0, "4k"), job("b", 1, "many"), job("c", 2, "64k")];
    let import = Import::parse(&report(&jobs)).expect("a report");
    assert_eq!(import.results.entries.len(), 2);
    let told = import.notes().join(" ");
    insta::assert_snapshot!(told, @"one job is one sample: there is no interval job 'b': iolab cannot carry out bs=many: it is left out");
    Import::parse(&report(&jobs[1..2])).expect_err("nothing is left");
}

/// Options of jobs, two of which are alone a cell of an experiment: that would leave out one of them as the same.
const LIKE_ANOTHER: [[&str; 2]; 3] = [
    // Reads, without the sync of the writes before them.
    [
        r#""rw": "write", "bs": "4k", "fdatasync": "1""#,
        r#""rw": "read", "bs": "128k""#,
    ],
    [
        r#""rw": "randrw", "bs": "4k", "fsync": "1""#,
        r#""rw": "randread", "bs": "4k""#,
    ],
    // More threads than blocks.
    [
        r#""rw": "randread", "bs": "4k", "numjobs": "2", "size": "64m""#,
        r#""rw": "randread", "bs": "1m", "numjobs": "2", "size": "1m", "filename": "x""#,
    ],
];

#[test]
fn every_job_is_a_sample_even_one_that_an_experiment_leaves_out() {
    let all = |options: &[&str]| -> Vec<String> {
        let with = |(number, options): (usize, &&str)| {
            let usual = r#""rw": "randread", "bs": "BS", "numjobs": "2""#;
            let job = JOB.replace(usual, options).replace("NAME", "a");
            job.replace("GROUP", &number.to_string())
        };
        options.iter().enumerate().map(with).collect()
    };
    for pair in LIKE_ANOTHER {
        let record = imported(&report(&all(&pair)));
        assert_eq!(
            (record.cells.len(), record.samples.len()),
            (2, 2),
            "{pair:?}"
        );
    }
    let jobs = all(&LIKE_ANOTHER.concat());
    let record = imported(&report(&jobs));
    assert_eq!(record.samples.len(), 6);
    // The definition in the file says no more than the jobs did.
    let toml = &record.experiment.toml;
    let experiment = Experiment::from_toml(toml, "the file").expect("a definition");
    assert_eq!(experiment.only.len(), record.cells.len(), "{toml}");
}

/// As a report has jobs that read at random, each with options of its own.
fn jobs_with(options: &[&str]) -> Vec<String> {
    let with = |(number, options): (usize, &&str)| {
        let job = job("a", number as u32, "4k").replace(r#", "numjobs": "2""#, "");
        let (before, after) = job.split_once(r#""bs": "4k""#).expect("its size");
        format!(r#"{before}"bs": "4k", {options}{after}"#)
    };
    options.iter().enumerate().map(with).collect()
}

#[test]
fn jobs_on_different_files_are_cells_and_on_one_file_samples() {
    let on = |names: &[&str]| {
        let options: Vec<String> = names
            .iter()
            .map(|name| format!(r#""filename": "{name}""#))
            .collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        report(&jobs_with(&options))
    };
    let text = on(&["/dev/a", "/dev/shm/b", "/dev/a", "c"]);
    let record = imported(&text);
    assert_eq!(record.experiment.factors, ["target"]);
    let cells = record.cells.iter().map(|cell| cell.levels.join(" "));
    let cells: Vec<String> = cells.collect();
    assert_eq!(cells, ["/dev/a", "/dev/shm/b", "/(folder of fio)/c"]);
    let of: Vec<i64> = record.samples.iter().map(|sample| sample.cell).collect();
    assert_eq!(of, [0, 1, 0, 2], "in the order of the report");
    let import = Import::parse(&text).expect("a report");
    insta::assert_snapshot!(import.notes().join("\n"), @r"
    jobs with the same settings and target are the samples of one cell
    its jobs measured different files, devices or servers: each is a level of the factor target
    the report does not name the folder that fio ran in: /(folder of fio) stands for it
    ");
    let record = imported(&on(&["/dev/a", "/dev/a"]));
    assert_eq!((record.cells.len(), record.samples.len()), (1, 2));
    assert!(record.experiment.factors.is_empty());
    assert_eq!(record.cells[0].spec.target, None);
}

#[test]
fn what_servers_ran_is_taken_and_their_sum_is_not() {
    let of = |name: &str, host: &str| {
        job(name, 0, "4k").replacen('{', &format!("{{\"hostname\": \"{host}\", "), 1)
    };
    let options = r#", "job options": {"rw": "randread", "bs": "4k", "numjobs": "2"}"#;
    let sum = of("All clients", "").replace(options, "");
    assert!(!sum.contains("options"));
    let jobs = [of("a", "one"), of("a", "two"), sum];
    let text = report(&jobs).replace("\"jobs\"", "\"client_stats\"");
    let targets = imported(&text).cells.into_iter().map(|cell| cell.levels);
    let targets: Vec<String> = targets.flatten().collect();
    assert_eq!(targets, ["//one/(folder of fio)", "//two/(folder of fio)"]);
}

#[test]
fn tests_of_iozone_become_cells_and_first_passes_warm_ups() {
    let text = "\tIozone: Performance Test of File I/O\n\tVersion $Revision: 3.489 $\n\tFile size set to 4096 kB\n\tRecord Size 64 kB\n\
        \tChildren see throughput for  2 readers \t= 1000.00 kB/sec\n\tChildren see throughput for 2 re-readers \t= 2000.00 kB/sec\n\
        \tChildren see throughput for 2 random writers \t= 500.00 kB/sec\n";
    let record = imported(text);
    assert_eq!(record.samples.len(), 3);
    let analysis = analyse(&record);
    let medians: Vec<f64> = analysis
        .cells
        .iter()
        .filter_map(|cell| Some(cell.throughput?.median))
        .collect();
    // Sequential writes and random reads were not among the tests, and are no cells.
    assert_eq!((medians.len(), analysis.cells.len()), (2, 2));
    assert!((medians[0] - 2.048).abs() < 1e-6, "{medians:?}");
}

#[test]
fn what_is_no_report_is_refused() {
    for text in ["", "hello", "{\"fio version\": 3}", "iozone test complete."] {
        let error = Import::parse(text).expect_err(text);
        assert!(error.remedy().is_some(), "{error}");
    }
    let idle = report(&[job("a", 0, "4k").replace("\"runtime\": 1000", "\"runtime\": 0")]);
    Import::parse(&idle).expect_err("nothing done");
}
