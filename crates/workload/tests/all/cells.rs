//! Cells written as settings.

use iolab_workload::settings::{CellSpec, GroupSpec, Setting};
use iolab_workload::trial::TrialSpec;

/// A cell with these settings, separated by spaces, and with groups after a bar each: `| NAME: SETTINGS`.
pub(crate) fn cell(text: &str) -> CellSpec {
    let mut parts = text.split('|');
    let mut cell = with(parts.next().expect("settings"));
    cell.groups = parts
        .map(|group| {
            let (name, sets) = group.split_once(':').expect(group);
            GroupSpec {
                name: name.trim().to_owned(),
                spec: with(sets),
            }
        })
        .collect();
    if cell.has_groups() {
        cell.trial = cell.merge_trials();
    }
    cell
}

pub(crate) fn trial(sets: &str) -> TrialSpec {
    cell(sets).trial
}

fn with(sets: &str) -> CellSpec {
    let mut cell = CellSpec::default();
    for set in sets.split_whitespace() {
        let (name, value) = set.split_once('=').expect(set);
        let setting = Setting::find(name).expect(set);
        setting.set(&mut cell, value).expect(set);
    }
    cell
}
