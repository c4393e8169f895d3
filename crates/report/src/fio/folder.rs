//! One report for each cell or group, in folders as bench-fio makes them, because fio-plot adds up the jobs of
//! one file.
//!
//! Source: bench-fio's `generate_output_directory` and `run_fio`: `TARGET/BS/MODE-IODEPTH-NUMJOBS.json`, mixed
//! loads below `TARGET/MODEPERCENT`.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use iolab_fio::described::DescribedJob;
use iolab_record::{Cell, RunRecord};
use iolab_workload::settings::level_label;
use iolab_workload::trial::{Pattern, TrialSpec};
use serde_json::Value;

use super::{group_name, jobs, report};
use iolab_analysis::trial_values::RunWithLatencies;

/// Factors that are already in the name of a file, or in its folder for a block size.
const IN_NAME: [&str; 6] = [
    "bs", "threads", "depth", "workload", "read_percent", "pattern",
];

/// The report of a cell, or of one of its groups.
#[derive(Debug)]
pub struct CellFile {
    /// Path below the common folder.
    pub path: PathBuf,
    report: Value,
}

impl CellFile {
    /// Writes the report.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, &self.report)?;
        writeln!(to)
    }
}

/// A report for each measured cell or group, each in a separate folder.
pub fn files(runs: &[RunWithLatencies]) -> Vec<CellFile> {
    let mut files: Vec<CellFile> = Vec::new();
    for (number, (record, latencies)) in runs.iter().enumerate() {
        let mut folder = PathBuf::new();
        if runs.len() > 1 {
            folder.push(format!("{}-{}", plain(&record.experiment.name), number + 1));
        }
        for cell in &record.cells {
            let targets = record.target_paths_of(cell).into_iter();
            let names = targets.map(|target| Path::new(target).file_name().unwrap_or_default());
            let names: Vec<_> = names.map(OsStr::to_string_lossy).collect();
            let folder = folder.join(plain(&names.join("+")));
            for (described, job) in jobs(number, record, cell, latencies) {
                files.push(CellFile {
                    path: folder.join(place(record, cell, &described)),
                    report: report(&record.run, vec![job]),
                });
            }
        }
    }
    files
}

fn place(record: &RunRecord, cell: &Cell, job: &DescribedJob) -> PathBuf {
    let trial = &job.trial;
    // Programs have no access order.
    let rw = job.options.get("rw").map_or("program", String::as_str);
    let mode = rw.split(':').next().unwrap_or_default();
    let mut place = PathBuf::new();
    if trial.reads() && trial.writes() {
        place.push(format!("{mode}{}", trial.read_percent));
    }
    for (factor, level) in record.experiment.factors.iter().zip(&cell.levels) {
        if !IN_NAME.contains(&factor.as_str()) {
            place.push(plain(&level_label(factor, level)));
        }
    }
    if let Some(group) = group_name(cell, job.group) {
        place.push(plain(group));
    }
    if !is_plain_order(trial) {
        place.push(plain(&format!("pattern={}", trial.pattern)));
    }
    place.push(block_size(trial.bs));
    place.join(format!("{mode}-{}-{}.json", trial.depth, trial.threads))
}

/// Whether fio's word for the order describes it fully.
fn is_plain_order(trial: &TrialSpec) -> bool {
    matches!(trial.pattern, Pattern::Seq | Pattern::Rand)
}

/// A size in fio's notation: `4k`, `1m`.
fn block_size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let whole = |(shift, _): &(u32, &str)| bytes.is_multiple_of(1 << shift);
    match units.into_iter().find(whole) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A name that is a single part of a path, whatever `name` contains.
fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "=.-_".contains(c);
    let plain: String = name
        .chars()
        .map(|c| if keep(c) { c } else { '_' })
        .collect();
    match plain.trim_matches('.') {
        "" => "target".to_owned(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_stay_inside() {
        for (name, part) in [
            ("vda", "vda"),
            ("..", "target"),
            ("a/b", "a_b"),
            ("", "target"),
            ("sync=each", "sync=each"),
        ] {
            assert_eq!(plain(name), part);
        }
        let sizes = [512, 4096, 1 << 20, 3 << 20, 1 << 30];
        assert_eq!(sizes.map(block_size), ["512", "4k", "1m", "3m", "1g"]);
    }
}
