//! What iolab makes of a job file, option by option.

use iolab_spec::foreign::{Effect, in_job};
use iolab_spec::settings::{CellSpec, Setting};

use super::jobs::Job;

/// An option with what iolab makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The number of its line.
    pub line: usize,
    /// The jobs that it holds for; empty for all of them.
    pub jobs: Vec<String>,
    /// As fio knows it: `rw=randread`.
    pub option: String,
    /// As iolab does: `pattern=rand, read_percent=100`, or why it changes nothing.
    pub means: String,
}

/// Every option of every job, in the order of their lines; there is a cell for each job.
pub(super) fn of(jobs: &[Job], cells: &[CellSpec]) -> Vec<Told> {
    let mut all: Vec<Told> = Vec::new();
    for (job, cell) in jobs.iter().zip(cells) {
        for (name, value) in &job.options {
            let with = match name.as_str() {
                "numjobs" if !job.also.is_empty() => {
                    format!(" (with {}, which does the same)", job.also.join(" and "))
                }
                _ => String::new(),
            };
            let told = Told {
                line: job.line_of(name),
                jobs: vec![job.name.clone()],
                option: format!("{name}={value}{with}"),
                means: means(name, cell),
            };
            let same = |other: &&mut Told| {
                (other.line, &other.option, &other.means) == (told.line, &told.option, &told.means)
            };
            match all.iter_mut().find(same) {
                Some(before) => before.jobs.extend(told.jobs),
                None => all.push(told),
            }
        }
    }
    for told in &mut all {
        if told.jobs.len() == jobs.len() {
            told.jobs.clear();
        }
    }
    all.sort_by_key(|told| told.line);
    all
}

fn means(name: &str, cell: &CellSpec) -> String {
    match in_job(name).map(|known| known.effect) {
        Some(Effect::Decides(settings)) => {
            let settings = settings.iter().filter_map(|name| Setting::find(name));
            let values = settings.map(|setting| format!("{}={}", setting.name, setting.get(cell)));
            values.collect::<Vec<_>>().join(", ")
        }
        Some(Effect::Asks(what)) => what.to_owned(),
        Some(Effect::Target) => "TARGET, unless one is given".to_owned(),
        Some(Effect::Idle(why)) => format!("nothing changes: {why}"),
        None => "switched off".to_owned(),
    }
}
