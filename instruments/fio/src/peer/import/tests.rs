mod reports;

use std::path::Path;

use iolab_analysis::analysis::{Response, analyse};
use iolab_plan::experiment::Experiment;
use iolab_record::{ServedBy, TargetKind, UNKNOWN_TARGET};
use iolab_runfile::NewFile;
use iolab_runner::peers::PeerList;
use iolab_workload::settings::{SETTINGS, Setting, Value};

use super::*;

const PEERS: PeerList = &[&crate::peer::PEER];

/// A job of 1000 requests in a second, with options that its counts agree with.
fn job_with(name: &str, group: usize, options: &str) -> String {
    let has = |option: &str| options.contains(option);
    let sizes = [("64k", 64 << 10), ("128k", 128 << 10), ("1m", 1 << 20)];
    let size = sizes
        .iter()
        .find(|(size, _)| has(&format!(r#""bs": "{size}""#)));
    let bytes = 1000 * size.map_or(4096, |(_, bytes)| *bytes);
    let direction = |requests: u64| {
        format!(
            r#"{{"io_bytes": {}, "total_ios": {requests}, "runtime": {}, "clat_ns": {{}},
            "lat_ns": {{"max": 9000, "mean": 1500.0, "N": {requests}, "bins": {{"1000": {}, "6000": {}}}}}}}"#,
            bytes * requests / 1000,
            requests.min(1) * 1000,
            requests * 9 / 10,
            requests / 10
        )
    };
    let (reads, writes) = match () {
        () if has(r#""rw": "write""#) => (0, 1000),
        () if has(r#""rw": "randrw""#) => (500, 500),
        () => (1000, 0),
    };
    format!(
        r#"{{"jobname": "{name}", "groupid": {group}, "error": 0, "job options": {{{options}}},
        "job_runtime": 1000, "usr_cpu": 5.0, "sys_cpu": 20.0, "read": {}, "write": {}}}"#,
        direction(reads),
        direction(writes)
    )
}

fn job(name: &str, group: usize, bs: &str) -> String {
    job_with(name, group, &format!(r#""rw": "randread", "bs": "{bs}""#))
}

fn report(jobs: &[String]) -> String {
    format!(
        r#"{{"fio version": "fio-3.33", "timestamp": 1700000000, "global options": {{"size": "64m", "direct": "1"}}, "jobs": [{}]}}"#,
        jobs.join(",")
    )
}

fn imported(text: &str) -> iolab_record::RunRecord {
    let folder = tempfile::tempdir().expect("a folder");
    let import = Results::parse(text, PEERS).expect("a report");
    let path = folder.path().join("x.iolab");
    import
        .write(Path::new("a report.json"), NewFile::At(&path))
        .expect("written");
    iolab_runfile::read(&path).expect("a run file")
}

#[test]
fn fio_jobs_become_cells_and_clones_one_sample() {
    let (a, b) = (("a", 0, "4k"), ("b", 1, "64k"));
    let jobs = [a, a, b, b].map(|(name, group, bs)| {
        let options = format!(r#""rw": "randread", "bs": "{bs}", "numjobs": "2""#);
        job_with(name, group, &options)
    });
    let record = imported(&report(&jobs));
    assert_eq!((record.cells.len(), record.samples.len()), (2, 2));
    assert_eq!(record.experiment.factors, ["bs"]);
    assert_eq!(record.run.target_kind, TargetKind::Imported);
    let analysis = analyse(&record);
    let cell = &analysis.cells[0];
    let spec = &cell.cell.spec;
    assert_eq!(
        (cell.n, spec.tool.name(), spec.trial.threads),
        (1, "fio", 2)
    );
    let throughput = cell.median(Response::Throughput).expect("one");
    assert!((throughput - 8.192).abs() < 1e-9, "{throughput}");
    let latency = cell.latency.expect("bins");
    assert_eq!(latency[Response::Latency], Some(1000.0));
    let served = cell.served.as_ref().expect("one");
    assert_eq!(served.unanimous(), Some(ServedBy::Unknown));
}

#[test]
fn a_job_without_words_leaves_the_others() {
    let jobs = [job("a", 0, "4k"), job("b", 1, "many"), job("c", 2, "64k")];
    let import = Results::parse(&report(&jobs), PEERS).expect("a report");
    assert_eq!(import.entries.len(), 2);
    let told = import.remarks().join(" ");
    insta::assert_snapshot!(told, @"one job is one sample: there is no interval job 'b': iolab cannot carry out bs=many: it is left out pattern=rand stands for rand or rand-replace: fio leaves a bare norandommap out of its report, but writes norandommap=1 the report does not name its target: the target is unknown, so its runs are not a series (--host NAME names the machine)");
    Results::parse(&report(&jobs[1..2]), PEERS).expect_err("nothing is left");
}

#[test]
fn options_of_global_alone_describe_a_job() {
    let own = r#""job options": {"rw": "randread", "bs": "4k"},"#;
    let bare = job("a", 0, "4k").replace(own, "");
    let all = r#""rw": "randread", "bs": "4k", "offset": "25%", "size": "64m""#;
    let text = report(&[bare]).replace(r#""size": "64m""#, all);
    let import = Results::parse(&text, PEERS).expect("a report");
    let cell = &import.entries[0].cell;
    let settings = ["bs", "region", "cache", "offset"].map(|name| {
        let setting = Setting::find(name).expect("a setting");
        setting.get(cell)
    });
    assert_eq!(settings, ["4KiB", "64MiB", "direct", "unknown"]);
    insta::assert_snapshot!(import.remarks().join("\n"), @"
    one job is one sample: there is no interval
    job 'a': offset=25% of a file whose size the report does not give
    pattern=rand stands for rand or rand-replace: fio leaves a bare norandommap out of its report, but writes norandommap=1
    the report does not name its target: the target is unknown, so its runs are not a series (--host NAME names the machine)
    ");
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
    // A block and a region of one.
    [
        r#""rw": "randread", "bs": "4k", "size": "64m""#,
        r#""rw": "randread", "bs": "1m", "size": "1m", "filename": "x""#,
    ],
];

#[test]
fn every_job_is_a_sample_even_a_duplicate() {
    let all = |options: &[&str]| -> Vec<String> {
        let numbered = options.iter().enumerate();
        numbered
            .map(|(number, options)| job_with("a", number, options))
            .collect()
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
    // The definition in the file holds only the facts of the jobs.
    let toml = &record.experiment.toml;
    let experiment = Experiment::from_toml(toml, "the file").expect("a definition");
    assert_eq!(experiment.only.len(), record.cells.len(), "{toml}");
}

#[test]
fn different_files_make_cells_and_one_file_samples() {
    let on = |names: &[&str]| {
        let job = |(number, name): (usize, &&str)| {
            let options = format!(r#""rw": "randread", "bs": "4k", "filename": "{name}""#);
            job_with("a", number, &options)
        };
        report(&names.iter().enumerate().map(job).collect::<Vec<_>>())
    };
    let text = on(&["/dev/a", "/dev/shm/b", "/dev/a", "c"]);
    let record = imported(&text);
    assert_eq!(record.experiment.factors, ["target"]);
    let cells = record.cells.iter().map(|cell| cell.levels.join(" "));
    let cells: Vec<String> = cells.collect();
    assert_eq!(cells, ["/dev/a", "/dev/shm/b", "/(folder of fio)/c"]);
    let of: Vec<i64> = record.samples.iter().map(|sample| sample.cell).collect();
    assert_eq!(of, [0, 1, 0, 2], "in the order of the report");
    let import = Results::parse(&text, PEERS).expect("a report");
    insta::assert_snapshot!(import.remarks().join("\n"), @"
    jobs with the same settings and target are the samples of one cell
    its jobs measured different files, devices or servers: each is a level of the factor target
    the report does not name the folder that fio ran in: /(folder of fio) stands for it
    pattern=rand stands for rand or rand-replace: fio leaves a bare norandommap out of its report, but writes norandommap=1
    ");
    let record = imported(&on(&["/dev/a", "/dev/a"]));
    assert_eq!((record.cells.len(), record.samples.len()), (1, 2));
    assert!(record.experiment.factors.is_empty());
    assert_eq!(record.cells[0].spec.target, None);
}

#[test]
fn results_of_servers_are_imported_without_their_sum() {
    let of = |name: &str, host: &str| {
        job(name, 0, "4k").replacen('{', &format!("{{\"hostname\": \"{host}\", "), 1)
    };
    let options = r#", "job options": {"rw": "randread", "bs": "4k"}"#;
    let sum = of("All clients", "").replace(options, "");
    assert!(!sum.contains("options"));
    let jobs = [of("a", "one"), of("a", "two"), sum];
    let text = report(&jobs).replace("\"jobs\"", "\"client_stats\"");
    let targets = imported(&text).cells.into_iter().map(|cell| cell.levels);
    let targets: Vec<String> = targets.flatten().collect();
    assert_eq!(targets, ["//one/(folder of fio)", "//two/(folder of fio)"]);
}

#[test]
fn other_texts_than_reports_are_refused() {
    for text in ["", "hello", "{\"fio version\": 3}"] {
        let error = Results::parse(text, PEERS).expect_err(text);
        assert!(error.remedy().is_some(), "{error}");
    }
    let idle = report(&[job("a", 0, "4k").replace("\"runtime\": 1000", "\"runtime\": 0")]);
    Results::parse(&idle, PEERS).expect_err("nothing done");
}
