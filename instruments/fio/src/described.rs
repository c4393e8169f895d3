//! Measured cells in fio's options: a job for each cell, or for each of its groups. The job's `description` names the settings
//! themselves, as iolab does.

use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::TrialSpec;

use crate::options::Options;
use crate::write_job::JobLines;

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
        let description = format!("iolab timed a program: {program}");
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
    let usual = CellSpec::default();
    let own = SETTINGS
        .iter()
        .filter(|setting| setting.get(cell) != setting.get(&usual))
        .map(|setting| format!("{}={}", setting.name, setting.get(cell)));
    let own: Vec<String> = own.collect();
    if !own.is_empty() {
        let description = format!("iolab measured {}", own.join("; "));
        options.insert("description".to_owned(), description);
    }
    DescribedJob {
        group,
        trial: cell.trial.clone(),
        options,
    }
}
