//! Measured cells in fio's options: a job for each cell, or for each of its groups. A setting that the options do not carry
//! is named in the job's `description`, from which iolab reads it.

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

use crate::options::{FileSize, Options, cell_or_faults, reported_cell};
use crate::write_job::JobLines;

/// Beginning of the description of a job.
const ALSO: &str = "iolab also had ";
/// Separator between the settings of a description.
const NEXT: &str = "; ";
/// Beginning of the description of a cell that issues no requests.
const PROGRAM: &str = "iolab timed a program: ";

/// The trials of a cell, or of one of its groups.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedJob {
    /// The number of the group; 0 without groups.
    pub group: u32,
    /// Settings of the trials.
    pub trial: TrialSpec,
    /// The settings as options of fio.
    pub options: Options,
}

/// The jobs of a cell.
pub fn describe(cell: &CellSpec) -> Vec<DescribedJob> {
    if let Some(program) = cell.program() {
        let description = format!("{PROGRAM}{program}");
        return vec![DescribedJob {
            group: 0,
            trial: cell.trial.clone(),
            options: Options::from([("description".to_owned(), description)]),
        }];
    }
    if !cell.has_groups() {
        return vec![job(0, JobLines::of(&cell.trial), cell)];
    }
    let groups = cell.group_trials();
    let jobs = groups.iter().map(|group| {
        let lines = JobLines::of(&group.trial);
        let own = CellSpec {
            trial: group.trial.clone(),
            target: group.target.clone(),
            ..CellSpec::default()
        };
        job(group.group, lines, &own)
    });
    jobs.collect()
}

fn job(group: u32, lines: JobLines, cell: &CellSpec) -> DescribedJob {
    let given = lines.lines.iter().map(|line| match line.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (line.clone(), "1".to_owned()),
    });
    let mut options: Options = given.collect();
    // The percentiles only change what fio prints.
    options.retain(|name, _| !name.ends_with("lat_percentiles"));
    // In a job file the file has another name.
    if let Some(name) = options.get_mut("filename") {
        "target".clone_into(name);
    }
    let read = readable(&mut options, cell.trial.region);
    let also = unsaid(cell, &read);
    if !also.is_empty() {
        let description = format!("{ALSO}{}", also.join(NEXT));
        options.insert("description".to_owned(), description);
    }
    DescribedJob {
        group,
        trial: cell.trial.clone(),
        options,
    }
}

/// The cell that the options give, without options that iolab does not read back.
fn readable(options: &mut Options, region: u64) -> CellSpec {
    let size = FileSize {
        known: None,
        otherwise: region,
    };
    loop {
        let Err(faults) = cell_or_faults(options, size) else {
            // Without options there is no fault.
            return reported_cell(options, region).unwrap_or_default();
        };
        let before = options.len();
        options.retain(|name, _| faults.iter().all(|fault| fault.option != name));
        if options.len() == before {
            options.clear();
        }
    }
}

/// The settings of the requests of a cell that its options do not say, as `NAME=VALUE`.
fn unsaid(cell: &CellSpec, read: &CellSpec) -> Vec<String> {
    let of_requests = |cell: &CellSpec| CellSpec {
        trial: cell.trial.clone(),
        tool: cell.tool,
        target: cell.target.clone(),
        batch_auto: false,
        ..CellSpec::default()
    };
    let (own, read) = (of_requests(cell), of_requests(read));
    let is_unsaid = |setting: &&Setting| match setting.name {
        // The arrivals have no effect in the closed loop.
        "arrivals" if own.trial.rate.is_none() => false,
        _ => setting.get(&own) != setting.get(&read),
    };
    let unsaid = SETTINGS.iter().filter(is_unsaid);
    unsaid
        .map(|setting| format!("{}={}", setting.name, setting.get(&own)))
        .collect()
}

/// The cell of a job that iolab described this way; a group stands for itself.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): options without a meaning for iolab, or a cell that issued no requests.
pub fn described_cell(options: &Options, done: u64) -> Result<CellSpec> {
    let description = options.get("description").map_or("", String::as_str);
    if description.starts_with(PROGRAM) {
        return Err(Error::usage(description)
            .hint("only trials with requests are imported; iolab reads its own run file"));
    }
    let mut cell = reported_cell(options, done)?;
    let also = description.strip_prefix(ALSO).into_iter();
    for also in also.flat_map(|also| also.split(NEXT)) {
        let (name, value) = also.split_once('=').unwrap_or((also, ""));
        let setting = Setting::find(name).ok_or_else(|| {
            Error::usage(format!("its description names no setting: {also}"))
                .hint("import it as iolab exported it")
        })?;
        setting.set(&mut cell, value)?;
    }
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::{OneProcess, Plan};
    use iolab_plan::experiment::Experiment;

    use super::*;

    /// The jobs of the only cell of an experiment with these settings.
    fn jobs(name: &str, sets: &str) -> Vec<DescribedJob> {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets.split_whitespace() {
            experiment.apply_set(set).expect(set);
        }
        let plan = Plan::of_new_run(experiment, &OneProcess).expect(sets);
        let [cell] = plan.cells() else {
            panic!("one cell: {sets}")
        };
        describe(&cell.spec)
    }

    /// Experiments with settings, and options that jobs of them have.
    const DESCRIBED: [(&str, &str, &[&str]); 18] = [
        ("read-size", "bs=64k pattern=reverse", &["rw=read:-131072"]),
        (
            "read-size",
            "bs=64k pattern=strided skip=3M",
            &["rw=read:3145728"],
        ),
        ("write-random", "bs=64k trim_percent=100", &["rw=randtrim"]),
        (
            "write-random",
            "bs=64k trim_percent=50",
            &["rw=randwrite", "description=trim_percent=50"],
        ),
        ("read-random", "bs=4k rate=500", &["rate_iops=500"]),
        (
            "read-random",
            "bs=4k rate=500 arrivals=poisson",
            &["rate_process=poisson"],
        ),
        (
            "read-random",
            "bs=4k rate=50MB/s threads=2",
            &["rate=25000000"],
        ),
        (
            "read-random",
            "bs=4k rate=500 threads=3",
            &["rate_iops=166", "description=rate=500"],
        ),
        (
            "read-random",
            "bs=4k rate=1000 read_percent=70",
            &["rw=randrw", "rwmixread=70", "rate_iops=700,300"],
        ),
        ("read-random", "bs=4k thinktime=1ms", &["thinktime=1000us"]),
        (
            "read-random",
            "bs=4k pattern=zipf:1.2",
            &["random_distribution=zipf:1.2"],
        ),
        (
            "read-random",
            "bs=4k pattern=zones:50/5:50/95",
            &["random_distribution=zoned:50/5:50/95"],
        ),
        (
            "read-random",
            "bs=4k bs_mix=4k:60,64k:40",
            &["bssplit=4096/60:65536/40,4096/60:65536/40"],
        ),
        (
            "read-random",
            "bs=4k fadvise=normal cache=cold backend=pvsync2",
            &["description=fadvise=normal"],
        ),
        (
            "read-random",
            "bs=4k bytes=3000k threads=3 cpus=0-1 placement=packed",
            &["cpus_allowed=0-1"],
        ),
        (
            "read-random",
            "bs=4k backend=io_uring depth=8 batch=one latency=false",
            &["gtod_reduce=1"],
        ),
        (
            "read-random",
            "bs=4k layout=private threads=2",
            &["numjobs=2"],
        ),
        (
            "write-random",
            "bs=4k sync=rwf_dsync",
            &["description=sync=rwf_dsync"],
        ),
    ];

    #[test]
    fn options_and_description_read_as_the_cell() {
        for (name, sets, wanted) in DESCRIBED {
            let jobs = jobs(name, sets);
            let [job] = &jobs[..] else {
                panic!("one job: {sets}")
            };
            for option in wanted {
                let (name, value) = option.split_once('=').expect("a value");
                let given = job.options.get(name).map_or("", String::as_str);
                match name {
                    "description" => assert!(given.contains(value), "{sets}: {:?}", job.options),
                    _ => assert_eq!(given, value, "{sets}: {:?}", job.options),
                }
            }
            same(job, sets);
        }
    }

    #[test]
    fn each_running_group_is_a_job_and_cell() {
        let sets = "writer.rate=none reader.bs=16k reader.threads=4 reader.rate=none reader.arrivals=constant";
        let jobs = jobs("interference", sets);
        let numbers: Vec<u32> = jobs.iter().map(|job| job.group).collect();
        assert_eq!(numbers, [1, 2]);
        let find = |name| {
            jobs.iter()
                .filter_map(|job| job.options.get(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(find("rw"), ["randread", "write"]);
        jobs.iter().for_each(|job| same(job, sets));
        let alone = self::jobs("interference", "writer.rate=0");
        assert_eq!(alone.len(), 1, "{alone:?}");
    }

    #[test]
    fn programs_are_refused_and_other_tools_named() {
        let program = CellSpec {
            command: Some("cat {file}".parse().expect("a program")),
            ..CellSpec::default()
        };
        let [job] = &describe(&program)[..] else {
            panic!("one job")
        };
        let error = described_cell(&job.options, 1).expect_err("a program");
        insta::assert_snapshot!(error.message(), @"iolab timed a program: cat {file}");
        let fio = CellSpec {
            tool: "fio".parse().expect("a tool"),
            ..CellSpec::default()
        };
        let [job] = &describe(&fio)[..] else {
            panic!("one job")
        };
        let read = described_cell(&job.options, 1).expect("a cell");
        assert_eq!(read.tool, fio.tool);
    }

    #[test]
    fn foreign_descriptions_are_refused_or_ignored() {
        let with = |text: &str| {
            let options = Options::from([("description".to_owned(), text.to_owned())]);
            described_cell(&options, 4096)
        };
        assert!(with("my disk").is_ok());
        for text in [
            "iolab also had nothing=1", "iolab also had bs", "iolab also had bs=none",
        ] {
            let error = with(text).expect_err(text);
            assert!(error.remedy().is_some(), "{text}");
        }
    }

    fn same(job: &DescribedJob, sets: &str) {
        let measured = CellSpec {
            trial: job.trial.clone(),
            ..CellSpec::default()
        };
        let read = described_cell(&job.options, 1 << 40).expect(sets);
        let unsaid = unsaid(&measured, &read);
        assert!(unsaid.is_empty(), "{sets}: {unsaid:?}, {:?}", job.options);
    }
}
