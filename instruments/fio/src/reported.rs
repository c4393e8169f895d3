//! The settings of an entry of a fio report: its options, as far as its counts agree with them.
//!
//! fio prints the options of one job if it adds up a group of different ones. It leaves out options without a value, and
//! clients leave out all of them. So a missing option says nothing, and options that the counts contradict say nothing
//! either.

use std::collections::BTreeSet;

use iolab_workload::Result;
use iolab_workload::foreign_options::{Effect, decided_settings, in_job};
use iolab_workload::operation::Moved;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{Sizes, TrialSpec};
use iolab_workload::units::format_bytes;

use crate::options::{FileSize, Options, cell_or_faults, value};

/// Share by which a count may miss the number that it confirms.
const TOLERANCE: f64 = 0.02;
/// Below this time, counts in whole milliseconds confirm nothing, ms.
const SHORT_MS: u64 = 20;
/// Most threads whose number the tolerance still determines.
const TOLD_APART_MAX: f64 = 24.0;

/// The counts of an entry, or of the clones of a job together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Counts {
    /// Reads.
    pub reads: Moved,
    /// Writes.
    pub writes: Moved,
    /// Trims.
    pub trims: Moved,
    /// Requests whose direction the report does not give.
    pub unsplit: Moved,
    /// From the first start to the last end, ms.
    pub elapsed_ms: u64,
    /// Time that its workers ran, added up, ms; 0 if the report lacks it.
    pub worked_ms: u64,
    /// Bounds of the greatest number of requests in flight; `None` if the report lacks it.
    pub in_flight: Option<(u64, u64)>,
    /// Whether it ended with an error.
    pub failed: bool,
}

impl Counts {
    fn directions(&self) -> [Moved; 3] {
        [self.reads, self.writes, self.trims]
    }

    /// The counts of each direction, and of all.
    fn each(&self) -> [Moved; 4] {
        [self.reads, self.writes, self.trims, self.unsplit]
    }

    /// Number of threads, if the times show it.
    fn threads(&self) -> Option<u32> {
        let ratio = self.worked_ms as f64 / self.elapsed_ms.max(1) as f64;
        let threads = ratio.round();
        let is_told = (1.0..=TOLD_APART_MAX).contains(&threads) && self.elapsed_ms >= SHORT_MS;
        (is_told && self.agrees_with(threads as u32)).then_some(threads as u32)
    }

    /// Whether this many threads can have run so long: within the tolerance, and a millisecond each.
    fn agrees_with(&self, threads: u32) -> bool {
        let all_ms = self.elapsed_ms as f64 * f64::from(threads);
        let apart = (self.worked_ms as f64 - all_ms).abs();
        apart <= (TOLERANCE * all_ms).max(f64::from(threads))
    }
}

/// Known facts about an entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reported {
    /// Its settings, including the names of unknown ones.
    pub cell: CellSpec,
    /// Why its options do not describe the actual job; `None` if the counts agree with them.
    pub doubt: Option<String>,
    /// Number of jobs that it adds up, if that differs from the number of clones in its options.
    pub group_of: Option<u32>,
    /// Its options that are shares of a file whose size the report does not give, as `NAME=VALUE`.
    pub shares: Vec<String>,
}

/// Options that may be given as a share of the file.
const SHARES: [&str; 3] = ["size", "offset", "offset_increment"];

/// Separates shares of a file of unknown size from the other options.
fn without_shares(options: &Options) -> (Options, Options) {
    let is_sized = value(options, "filesize").is_some();
    let all = options
        .iter()
        .map(|(name, text)| (name.clone(), text.clone()));
    all.partition(|(name, text)| !is_sized && SHARES.contains(&name.as_str()) && text.contains('%'))
}

/// The settings that options decide.
fn decided(options: &Options) -> BTreeSet<&'static str> {
    let effects = options.keys().filter_map(|name| Some(in_job(name)?.effect));
    effects.flat_map(Effect::settings).copied().collect()
}

/// The settings of an entry with these options, checked by its counts. `repeated` is an option that was given twice.
/// `options` is `None` if the report has none.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the first option whose value iolab has no words for.
pub(crate) fn reported(
    options: Option<&Options>,
    repeated: Option<&str>,
    counts: &Counts,
) -> Result<Reported> {
    let size = FileSize {
        known: None,
        otherwise: u64::MAX >> 1,
    };
    let (shares, readable) = without_shares(options.unwrap_or(&Options::new()));
    let read = cell_or_faults(&readable, size);
    // There is at least one fault.
    let mut cell = read.map_err(|mut faults| faults.swap_remove(0).error)?;
    let checked = Checked {
        options: &readable,
        trial: &cell.trial,
        counts,
    };
    let doubt = match (options, repeated) {
        (None, _) => Some("its report has none of its options".to_owned()),
        (_, Some(option)) => Some(format!("{option} is given twice")),
        _ => checked.contradiction(),
    };
    let group_of = checked.group_of();
    let known = match doubt {
        None => &checked.said() - &decided(&shares),
        Some(_) => checked.counted(),
    };
    let counted = checked.counted();
    let threads = counts.threads().filter(|_| counted.contains("threads"));
    cell.trial.threads = threads.unwrap_or(cell.trial.threads);
    if counted.contains("read_percent") {
        let only = |count: Moved| if count.requests > 0 { 100 } else { 0 };
        cell.trial.read_percent = only(counts.reads);
        cell.trial.trim_percent = only(counts.trims);
    }
    let default = CellSpec::default();
    for setting in decided_settings().filter_map(Setting::find) {
        if !known.contains(setting.name) && !counted.contains(setting.name) {
            setting.set(&mut cell, &setting.get(&default))?;
            cell.unknown.insert(setting.name);
        }
    }
    Ok(Reported {
        cell,
        doubt,
        group_of,
        shares: shares
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect(),
    })
}

/// The options of an entry, the trial that they describe, and what was counted.
struct Checked<'a> {
    options: &'a Options,
    trial: &'a TrialSpec,
    counts: &'a Counts,
}

impl Checked<'_> {
    fn has(&self, name: &'static str) -> bool {
        value(self.options, name).is_some()
    }

    /// The settings that the options say.
    fn said(&self) -> BTreeSet<&'static str> {
        let mut said = decided(self.options);
        let is_mix = self.trial.reads() && self.trial.writes();
        let is_split = self.counts.unsplit.requests == 0;
        let threads_known = said.contains("threads") || self.counted().contains("threads");
        let is_ordered = said.contains("backend") && !self.trial.backend.is_asynchronous();
        let ends_by_time = self.has("time_based") && self.has("runtime");
        let is_done = |bound| self.counts.each().iter().any(|done| done.bytes == bound);
        let ends_by_bytes = self.has("io_size") && self.trial.limit.bytes.is_some_and(is_done);
        // Settings that an option decides only together with others.
        for (setting, is_said) in [
            (
                "read_percent",
                is_split && (!is_mix || self.has("rwmixread") || self.has("rwmixwrite")),
            ),
            ("trim_percent", is_split),
            ("cache", self.has("direct") || self.has("buffered")),
            (
                "depth",
                is_ordered || said.contains("backend") && self.has("iodepth"),
            ),
            ("bytes", ends_by_time || ends_by_bytes),
            (
                "region",
                threads_known && (self.has("size") || self.has("filesize")),
            ),
            (
                "layout",
                threads_known && (self.has("filename") || self.has("directory")),
            ),
        ] {
            match is_said && (said.contains(setting) || setting == "depth") {
                true => said.insert(setting),
                false => said.remove(setting),
            };
        }
        if !self.reaches_depth() {
            said.remove("depth");
        }
        said
    }

    /// The settings that the counts confirm whatever the options say.
    fn counted(&self) -> BTreeSet<&'static str> {
        let mut counted = BTreeSet::new();
        let directions = self.counts.directions();
        if directions.iter().filter(|done| done.requests > 0).count() == 1 {
            counted.extend(["read_percent", "trim_percent"]);
        }
        if self.checks_threads() && self.counts.threads().is_some() {
            counted.insert("threads");
        }
        if self.has("bs") && self.trial.bs_mix.is_none() && self.other_size().is_none() {
            counted.extend(["bs", "bs_mix"]);
        }
        counted
    }

    /// A contradiction between the counts and the options, in words.
    fn contradiction(&self) -> Option<String> {
        if let Some(text) = self.options.get("kb_base").filter(|text| *text != "1024") {
            return Some(format!("its sizes have other units (kb_base={text})"));
        }
        if let Some((name, text)) = value(self.options, "nrfiles").filter(|(_, text)| *text != "1")
        {
            return Some(format!("its requests go to several files ({name}={text})"));
        }
        self.other_threads()
            .or_else(|| self.other_direction())
            .or_else(|| self.other_size())
            .or_else(|| self.other_time())
            .or_else(|| self.deeper())
    }

    /// Threads that its options say, if their times are whole.
    fn checks_threads(&self) -> bool {
        // Reading back is a time of its own.
        self.counts.worked_ms > 0 && self.counts.elapsed_ms >= SHORT_MS && !self.trial.verify
    }

    fn other_threads(&self) -> Option<String> {
        let said = self.trial.threads;
        if !self.checks_threads() || self.counts.agrees_with(said) {
            return None;
        }
        Some(match self.counts.threads() {
            Some(_) => "it has the options of one of them".to_owned(),
            None => format!(
                "its jobs ran {:.2} times as long as the whole, where its options say {said}: it adds up several",
                self.counts.worked_ms as f64 / self.counts.elapsed_ms.max(1) as f64
            ),
        })
    }

    fn group_of(&self) -> Option<u32> {
        let threads = self.counts.threads().filter(|_| self.checks_threads())?;
        (!self.counts.agrees_with(self.trial.threads)).then_some(threads)
    }

    /// Requests of a direction that the options do not ask for, or none of one that they do.
    fn other_direction(&self) -> Option<String> {
        let rw = value(self.options, "rw")?.1;
        let trial = self.trial;
        let asked = [
            (trial.reads() || trial.verify, "read"),
            (trial.writes_data(), "wrote"),
            (trial.trims(), "trimmed"),
        ];
        for ((is_asked, did), done) in asked.into_iter().zip(self.counts.directions()) {
            if done.requests > 0 && !is_asked {
                let bytes = format_bytes(done.bytes as f64);
                return Some(format!("it {did} {bytes} with rw={rw}"));
            }
        }
        let (reads, writes) = (self.counts.reads.requests, self.counts.writes.requests);
        let all = (reads + writes) as f64;
        if !(trial.reads() && trial.writes_data()) || all == 0.0 {
            return None;
        }
        let said = f64::from(trial.read_percent) / 100.0;
        let chance = 3.0 * (said * (1.0 - said) / all.max(1.0)).sqrt();
        let share = reads as f64 / all.max(1.0);
        let is_off = match self.has("rwmixread") || self.has("rwmixwrite") {
            true => (share - said).abs() > chance.max(TOLERANCE),
            false => reads == 0 || writes == 0,
        };
        is_off.then(|| {
            format!(
                "{:.1} % of its requests read, where its options say {}",
                share * 100.0,
                trial.read_percent
            )
        })
    }

    /// A mean size of requests that the options do not give.
    fn other_size(&self) -> Option<String> {
        if !["bs", "bssplit", "bsrange"]
            .iter()
            .any(|name| self.has(name))
        {
            return None;
        }
        let sizes = |of: Option<&Sizes>| match of {
            None => (self.trial.bs, self.trial.bs),
            Some(sizes) => {
                let shares = sizes.shares().iter();
                let (least, most) = (shares.clone().map(|s| s.bytes), shares.map(|s| s.largest()));
                (least.min().unwrap_or(1), most.max().unwrap_or(u64::MAX))
            }
        };
        let mix = self.trial.bs_mix.as_ref();
        let [reads, writes] = [
            sizes(mix.map(|mix| &mix.reads)),
            sizes(mix.map(|mix| &mix.writes)),
        ];
        let all = (reads.0.min(writes.0), reads.1.max(writes.1));
        let asked = [reads, writes, writes, all];
        let mut done = asked.into_iter().zip(self.counts.each());
        let other = done.find(|((least, most), done)| {
            let bounds = (
                least.saturating_mul(done.requests),
                most.saturating_mul(done.requests),
            );
            // The last request of each thread may be cut short by the end of the file.
            let last = most.saturating_mul(self.trial.threads.into());
            done.requests > 0
                && (done.bytes > bounds.1 || done.bytes.saturating_add(last) <= bounds.0)
        });
        other.map(|((least, most), done)| {
            let said = match least == most {
                true => format!("{least}"),
                false => format!("{least} to {most}"),
            };
            format!(
                "its requests had {:.0} bytes on average, where its options say {said}",
                done.bytes as f64 / done.requests as f64
            )
        })
    }

    /// A time that is not the one that the options ask for.
    fn other_time(&self) -> Option<String> {
        let asked = self.trial.limit.time?.as_millis() as f64;
        let ran = self.counts.elapsed_ms as f64;
        let may_end_early =
            !self.has("time_based") || self.counts.failed || self.has("steadystate");
        let is_early = !may_end_early && ran < asked * 0.9;
        // A slow request may end late.
        let is_late = ran > asked * 1.5 + 1000.0;
        (is_early || is_late).then(|| {
            let (name, text) = value(self.options, "runtime").unwrap_or(("runtime", ""));
            format!("it ran {ran:.0} ms with {name}={text}")
        })
    }

    /// More requests in flight than the options allow.
    fn deeper(&self) -> Option<String> {
        let (least, _) = self.counts.in_flight?;
        (least > u64::from(self.trial.depth) && self.has("ioengine")).then(|| {
            format!(
                "it had {least} requests in flight, where its options allow {}",
                self.trial.depth
            )
        })
    }

    /// Whether as many requests were in flight as the options say.
    fn reaches_depth(&self) -> bool {
        let depth = u64::from(self.trial.depth);
        self.counts
            .in_flight
            .is_none_or(|(least, most)| (least..=most).contains(&depth))
    }
}
