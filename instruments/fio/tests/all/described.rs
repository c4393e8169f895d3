//! Measured cells as jobs, and such jobs as cells.

use iolab_fio::described::{DescribedJob, describe, described_cell};
use iolab_fio::options::Options;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::{CellSpec, SETTINGS};

use crate::line_files::check;

/// Options that most jobs have, which outcomes leave out.
const USUAL: [&str; 14] = [
    "bs=4096",
    "description=iolab also had first_offset=random; buffer_memory=contiguous",
    "direct=1",
    "fadvise_hint=0",
    "filename=target",
    "group_reporting=1",
    "io_size=1073741824",
    "iodepth=1",
    "ioengine=psync",
    "numjobs=1",
    "offset=0",
    "runtime=500000us",
    "size=1073741824",
    "thread=1",
];

/// The jobs of the only cell of an experiment.
fn jobs(line: &str) -> Vec<DescribedJob> {
    let (name, sets) = line.split_once(' ').expect("settings");
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets.split(' ') {
        experiment.apply_set(set).expect(set);
    }
    let plan = Plan::of_new_run(experiment, &OneProcess).expect(line);
    let [cell] = plan.cells() else {
        panic!("one cell: {line}")
    };
    describe(&cell.spec)
}

#[test]
fn options_and_description_read_as_the_cell() {
    check(&["described"], |line| {
        let jobs = jobs(line).into_iter().map(|job| {
            let measured = CellSpec {
                trial: job.trial.clone(),
                batch_auto: false,
                ..CellSpec::default()
            };
            let mut read = described_cell(&job.options, 1 << 40).expect(line);
            read.batch_auto = false;
            // The arrivals have no effect in the closed loop.
            let counts = |name: &str| name != "arrivals" || measured.trial.rate.is_some();
            for setting in SETTINGS.iter().filter(|setting| counts(setting.name)) {
                assert_eq!(
                    setting.get(&read),
                    setting.get(&measured),
                    "{line}: {}",
                    setting.name
                );
            }
            let is_usual = |text: &String| USUAL.contains(&text.as_str());
            let options = job.options.iter();
            let options = options.map(|(name, value)| format!("{name}={value}"));
            let options: Vec<String> = options.filter(|text| !is_usual(text)).collect();
            format!("{}: {}\n", job.group, options.join(" "))
        });
        jobs.collect::<String>()
    });
}

#[test]
fn programs_are_refused_and_other_tools_named() {
    let program = CellSpec {
        command: Some("cat {file}".parse().expect("a program")),
        ..CellSpec::default()
    };
    let error = described_cell(&describe(&program)[0].options, 1).expect_err("a program");
    assert_eq!(error.message(), "iolab timed a program: cat {file}");
    let fio = CellSpec {
        tool: "fio".parse().expect("a tool"),
        ..CellSpec::default()
    };
    let read = described_cell(&describe(&fio)[0].options, 1).expect("a cell");
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
        assert!(with(text).expect_err(text).remedy().is_some(), "{text}");
    }
}
