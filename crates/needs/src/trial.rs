//! Trials of tests, written as settings.

use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::TrialSpec;

/// The default trial with these settings, separated by spaces: `depth=4 bytes=32k`. A setting that does not exist, or not
/// with this value, panics.
pub fn settings(sets: &str) -> TrialSpec {
    let mut cell = CellSpec::default();
    for set in sets.split_whitespace() {
        let (name, value) = set.split_once('=').expect(set);
        let setting = Setting::find(name).expect(set);
        setting.set(&mut cell, value).expect(set);
    }
    cell.trial
}
