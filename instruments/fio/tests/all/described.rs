//! Measured cells as jobs, which say every setting of the cell.

use iolab_fio::described::{DescribedJob, describe};
use iolab_fio::options::{Options, reported_cell};
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};

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

/// The cell that the options and the description of a job say.
fn said(options: &Options) -> CellSpec {
    let mut cell = reported_cell(options, 1 << 40).expect("a cell");
    let also = options.get("description").into_iter();
    let also = also.flat_map(|text| text.strip_prefix("iolab also had "));
    for setting in also.flat_map(|also| also.split("; ")) {
        let (name, value) = setting.split_once('=').expect("a setting");
        let setting = Setting::find(name).expect(name);
        setting.set(&mut cell, value).expect(name);
    }
    cell
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
            let mut read = said(&job.options);
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
