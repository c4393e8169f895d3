//! Measured cells in fio's options: a job for each cell, or for each of its groups. A setting that the options do not carry
//! is named in the job's `description`.

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;

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
        return vec![job(0, cell)];
    }
    let groups = cell.group_trials();
    let jobs = groups.iter().map(|group| {
        let own = CellSpec {
            trial: group.trial.clone(),
            target: group.target.clone(),
            ..CellSpec::default()
        };
        job(group.group, &own)
    });
    jobs.collect()
}

fn job(group: u32, cell: &CellSpec) -> DescribedJob {
    let lines = JobLines::of(&cell.trial).lines;
    let given = lines.iter().map(|line| match line.split_once('=') {
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
