//! Explains a job file option by option: the setting that each becomes, or why it has no effect.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use iolab_workload::foreign_options::{Effect, in_job};
use iolab_workload::settings::{CellSpec, Setting};

use super::job_errors::LinePosition;
use super::jobs::{Job, listed};

/// One option and its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionExplanation {
    /// Its place: `line 3`.
    pub place: String,
    /// The jobs that it applies to; empty for all of them.
    pub jobs: Vec<String>,
    /// The option in fio's words: `rw=randread`.
    pub option: String,
    /// The settings in iolab's words: `pattern=rand, read_percent=100`, or why it changes nothing.
    pub means: String,
}

/// Every option of every job, in the order of their lines; there is a cell for each job.
pub(super) fn of(jobs: &[Job], cells: &[CellSpec]) -> Vec<OptionExplanation> {
    let mut all: Vec<(LinePosition, OptionExplanation)> = Vec::new();
    let mut seen: HashMap<(LinePosition, String, String), usize> = HashMap::new();
    for (job, cell) in jobs.iter().zip(cells) {
        // The offset of a clone follows from written options.
        let own = job.options.iter();
        let own = own.filter(|(name, _)| job.made_by.is_empty() || *name != "offset");
        // A filename that stands for libblkio_path, which is explained itself.
        let has_path = job.options.contains_key("libblkio_path");
        let own = own.filter(|(name, _)| !has_path || *name != "filename");
        let own = own.map(|(name, value)| (name.as_str(), value, None));
        let made_by = job.made_by.iter();
        let made_by = made_by.map(|(name, value, came_to)| (*name, value, Some(came_to)));
        for (name, value, came_to) in own.chain(made_by) {
            let with = match name {
                "numjobs" if came_to.is_none() && !job.also.is_empty() => {
                    format!(" (with the threads of {})", listed(&job.also))
                }
                _ => String::new(),
            };
            let place = job.place_of(name);
            let told = OptionExplanation {
                place: place.to_string(),
                jobs: vec![job.name.clone()],
                option: job.shown(name, value) + &with,
                means: came_to.map_or_else(|| means(name, cell), String::clone),
            };
            let key = (place.clone(), told.option.clone(), told.means.clone());
            match seen.entry(key) {
                Entry::Occupied(before) => all[*before.get()].1.jobs.extend(told.jobs),
                Entry::Vacant(new) => {
                    new.insert(all.len());
                    all.push((place, told));
                }
            }
        }
    }
    for (_, told) in &mut all {
        if told.jobs.len() == jobs.len() {
            told.jobs.clear();
        }
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.into_iter().map(|(_, told)| told).collect()
}

fn means(name: &str, cell: &CellSpec) -> String {
    match in_job(name).map(|known| known.effect) {
        Some(Effect::Decides(settings)) => {
            // A setting after the first two is shown only if the option changes it.
            let default = CellSpec::default();
            let settings = settings.iter().filter_map(|name| Setting::find(name));
            let changed = settings.enumerate().filter(|(place, setting)| {
                *place < 2 || setting.value(cell) != setting.value(&default)
            });
            let values =
                changed.map(|(_, setting)| format!("{}={}", setting.name, setting.get(cell)));
            values.collect::<Vec<_>>().join(", ")
        }
        Some(Effect::Asks(what)) => what.to_owned(),
        Some(Effect::Target) => "TARGET, unless one is given".to_owned(),
        Some(Effect::Idle(why)) => format!("nothing changes: {why}"),
        None => "switched off".to_owned(),
    }
}
