//! The progress of a run: a live view on a terminal, a line per experiment elsewhere, or events for machines.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iolab_report::live::{self, LiveView, RunTime};
use iolab_runner::{Basis, Observer, Progress, RunEnd, RunSnapshot, RunStart, TrialDone};
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{counted, format_bytes};
use iolab_workload::response::Response;
use iolab_workload::units::rough_duration;
use serde_json::{Map, Value, json};

use crate::screen::{Screen, Size};
use iolab_command::output::{self, Log};

/// Shows the progress of one experiment, or of filling scratch files.
pub(crate) struct Display {
    name: String,
    /// The first line of the live view.
    title: String,
    screen: Option<Screen>,
    is_coloured: bool,
    is_virtual: bool,
    shared: SharedBudget,
    /// The current experiment, once it has started.
    experiment: String,
    factors: Vec<String>,
    progress: Progress,
    /// Whether trials leave data in caches that is written out between them.
    leaves_writes: bool,
    told: Vec<String>,
    run_file: Option<PathBuf>,
}

/// State that an experiment shares with others of the same study.
#[derive(Debug, Clone)]
pub(crate) struct SharedBudget {
    /// Start of the first experiment.
    pub(crate) began: Instant,
    /// Time limit of all of them, if others follow.
    pub(crate) total: Option<Duration>,
    /// Whether trials leave data in caches that is written out, in this experiment or a later one.
    pub(crate) leaves_writes: bool,
    /// Time used by earlier ones, by the clock of budgets.
    pub(crate) spent: Duration,
    /// Results of earlier ones.
    pub(crate) done: Vec<String>,
    /// Whether the user knows that this one has too little of it.
    pub(crate) is_short_told: bool,
}

impl SharedBudget {
    /// The state of a single experiment.
    fn alone() -> Self {
        Self {
            began: Instant::now(),
            total: None,
            leaves_writes: false,
            spent: Duration::ZERO,
            done: Vec::new(),
            is_short_told: false,
        }
    }
}

impl Display {
    /// Starts to show the progress of `name`.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: "iolab".to_owned(),
            screen: (output::log() == Log::Live).then(Screen::open).flatten(),
            is_coloured: output::colours_of_stderr(),
            is_virtual: false,
            shared: SharedBudget::alone(),
            experiment: String::new(),
            factors: Vec::new(),
            progress: Progress {
                trials_done: 0,
                spent: Duration::ZERO,
                left: Duration::ZERO,
                basis: Basis::Budget,
            },
            leaves_writes: false,
            told: Vec::new(),
            run_file: None,
        }
    }

    /// Sets the title.
    pub(crate) fn titled(mut self, title: &str) -> Self {
        title.clone_into(&mut self.title);
        self
    }

    /// Sets whether time is virtual.
    pub(crate) fn in_virtual_time(mut self, is_virtual: bool) -> Self {
        self.is_virtual = is_virtual;
        self
    }

    /// Shows the time left of the budget of several experiments.
    pub(crate) fn among(mut self, shared: SharedBudget) -> Self {
        self.shared = shared;
        self
    }

    /// Suppresses notes that the user has seen.
    pub(crate) fn without(mut self, told: &[String]) -> Self {
        self.told.extend_from_slice(told);
        self
    }

    /// Ends the display; returns the notes shown so far.
    pub(crate) fn end(mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// The run file, once it exists.
    pub(crate) fn kept_in(&self) -> Option<&Path> {
        self.run_file.as_deref()
    }

    /// The elapsed and the total time.
    fn time(&self) -> RunTime {
        let elapsed = match self.is_virtual {
            true => self.shared.spent + self.progress.spent,
            false => self.shared.began.elapsed(),
        };
        let own = elapsed + self.progress.left;
        RunTime {
            elapsed,
            // Later experiments get the rest of the budget.
            total: self.shared.total.map_or(own, |budget| own.max(budget)),
            is_bound: self.shared.total.is_none()
                && self.progress.basis == Basis::AtMost
                && !self.leaves_writes,
            may_exceed: self.leaves_writes || self.shared.leaves_writes,
            is_virtual: self.is_virtual,
        }
    }

    /// Writes an event in machine mode, otherwise a line with a time stamp if there is no live view.
    fn log(&self, event: &str, fields: Value, line: impl FnOnce() -> Option<String>) {
        match output::log() {
            Log::Json => {
                let mut fields = match fields {
                    Value::Object(fields) => fields,
                    _ => Map::new(),
                };
                if !self.experiment.is_empty() {
                    fields.insert("experiment".to_owned(), json!(self.experiment));
                }
                output::event(event, fields);
            }
            Log::Lines => {
                if let Some(line) = line() {
                    output::stamped(&format!("{}: {line}", self.name));
                }
            }
            Log::Live | Log::Quiet => {}
        }
    }
}

/// Starts to show how much of files of `total` bytes is filled.
pub(crate) fn filling(what: &str, total: u64) -> Box<dyn FnMut(u64)> {
    let mut display = Display::new(what);
    let fields = json!({ "step": what, "bytes": total });
    display.log("step", fields, || Some(format_bytes(total as f64)));
    Box::new(move |done| {
        if let Some(screen) = &mut display.screen {
            let percent = done.saturating_mul(100) / total.max(1);
            let (done, total) = (done >> 20, total >> 20);
            let line = format!("{}   {done} of {total} MiB   {percent} %", display.name);
            screen.offer(move |_| vec![line]);
        }
    })
}

/// The basis of the time left, for machines.
fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Budget => "budget",
        Basis::AtMost => "at-most",
        Basis::Trials => "trials",
    }
}

/// The unit of a response as it is counted.
fn unit(response: Response) -> &'static str {
    match response.is_time() {
        true => "ns",
        false => response.heading(),
    }
}

impl Observer for Display {
    fn run_starts(&mut self, start: &RunStart<'_>) {
        self.progress = start.progress;
        self.leaves_writes = start.leaves_writes;
        start.experiment.clone_into(&mut self.experiment);
        start.factors.clone_into(&mut self.factors);
        let fields = json!({
            "file": start.file.display().to_string(),
            "factors": start.factors,
            "cells": start.cells,
            "response": start.response.name(),
            "unit": unit(start.response),
            "left_s": start.progress.left.as_secs_f64(),
            "left_from": basis(start.progress.basis),
        });
        let cells = counted(start.cells as u64, "cell");
        let cells = cells + if start.adds_cells { " at first" } else { "" };
        let left = rough_duration(start.progress.left);
        // A block that is begun within the budget is completed beyond it.
        let bound = match start.progress.basis {
            Basis::AtMost if !start.leaves_writes => "at most",
            Basis::Budget | Basis::AtMost => "up to about",
            Basis::Trials => "about",
        };
        let time = match self.is_virtual {
            true => " of virtual time",
            false => "",
        };
        let more = match start.leaves_writes {
            true => ", more if caches are slow to write out",
            false => "",
        };
        self.log("start", fields, || {
            Some(format!("started, {cells}, {bound} {left}{time}{more}"))
        });
    }

    fn run_file(&mut self, path: &Path) {
        self.run_file = Some(path.to_owned());
    }

    fn step_starts(&mut self, step: &str) {
        if let Some(screen) = &mut self.screen {
            screen.step(escape_control(&format!("{}   {step}", self.name)).into_owned());
        }
        self.log("step", json!({ "step": step }), || Some(step.to_owned()));
    }

    fn trial_starts(&mut self, snapshot: &dyn Fn() -> RunSnapshot) {
        let time = self.time();
        let Some(screen) = &mut self.screen else {
            return;
        };
        if !screen.is_due() {
            return;
        }
        let view = LiveView {
            title: self.title.clone(),
            time,
            experiment: self.name.clone(),
            run: snapshot(),
            done: self.shared.done.clone(),
        };
        let is_coloured = self.is_coloured;
        screen.offer(move |Size { width, height }| {
            let screen = live::Screen {
                width,
                height,
                is_coloured,
            };
            live::frame(&view, &screen)
        });
    }

    fn trial_done(&mut self, trial: &TrialDone<'_>) {
        self.progress = trial.progress;
        let levels = self.factors.iter().zip(trial.levels);
        let cell: Map<String, Value> = levels
            .map(|(factor, level)| (factor.clone(), json!(level)))
            .collect();
        let fields = json!({
            "cell": cell,
            "block": trial.block,
            "warmup": trial.warmup,
            "value": trial.value,
            "trials": trial.progress.trials_done,
            "spent_s": trial.progress.spent.as_secs_f64(),
            "left_s": trial.progress.left.as_secs_f64(),
            "left_from": basis(trial.progress.basis),
        });
        self.log("trial", fields, || None);
    }

    fn run_ends(&mut self, end: &RunEnd) {
        let fields = json!({
            "status": end.status.name(),
            "trials": end.trials_done,
            "cells": end.cells,
            "precise": end.within.map(|within| within.cells),
        });
        self.log("end", fields, || {
            let trials = counted(end.measured, "measured trial");
            let status = end.status;
            // Steady rounds and a soak have no precision goal.
            let precise = end
                .within
                .map_or_else(|| counted(end.cells as u64, "cell"), live::within_goal);
            Some(format!("{status}, {trials}, {precise}"))
        });
    }

    fn note(&mut self, message: &str) {
        if self.told.iter().any(|told| told == message) {
            return;
        }
        self.told.push(message.to_owned());
        output::note(format_args!("note: {}", escape_control(message)));
    }

    fn budget_is_short(&mut self, message: &str) {
        if !self.shared.is_short_told {
            self.note(message);
        }
    }
}
