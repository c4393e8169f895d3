//! The progress of a run: a live view on a terminal, a line per experiment elsewhere, or events for machines.
//!
//! Drawing on the terminal: a separate thread draws, and measuring threads wait for it at most a few milliseconds. Frames that a
//! slow terminal cannot take are dropped.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use serde_json::{Map, Value, json};
use signal_hook::consts::SIGCONT;
use unicode_width::UnicodeWidthStr;

use iolab_command::output::{self, Log};
use iolab_report::live::{self, LiveView, RunTime};
use iolab_runner::{Basis, Observer, Progress, RunEnd, RunSnapshot, RunStart, TrialDone};
use iolab_workload::escape_control::escape_control;
use iolab_workload::response::Response;
use iolab_workload::units::{counted, format_bytes, rough_duration};

/// Shows the progress of one experiment, or of filling scratch files.
pub(crate) struct Display {
    name: String,
    /// The first line of the live view.
    pub(crate) title: String,
    screen: Option<Screen>,
    pub(crate) is_virtual: bool,
    /// Start of the first experiment of a study.
    pub(crate) began: Instant,
    /// Time limit of all experiments of a study, if others follow.
    pub(crate) total: Option<Duration>,
    /// Whether trials leave data in caches that is written out, in this experiment of a study or a later one.
    pub(crate) study_leaves_writes: bool,
    /// Time used by earlier experiments, by the clock of budgets.
    pub(crate) spent: Duration,
    /// Results of earlier experiments.
    pub(crate) done: Vec<String>,
    /// The current experiment, once it has started.
    experiment: String,
    factors: Vec<String>,
    progress: Progress,
    /// Whether trials leave data in caches that is written out between them.
    leaves_writes: bool,
    /// The run file, once it exists.
    run_file: Option<PathBuf>,
}

impl Display {
    /// Starts to show the progress of `name`.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: "iolab".to_owned(),
            screen: (output::log() == Log::Live).then(Screen::open).flatten(),
            is_virtual: false,
            began: Instant::now(),
            total: None,
            study_leaves_writes: false,
            spent: Duration::ZERO,
            done: Vec::new(),
            experiment: String::new(),
            factors: Vec::new(),
            progress: Progress::default(),
            leaves_writes: false,
            run_file: None,
        }
    }

    /// Ends the display; returns the run file if it exists.
    pub(crate) fn end(self) -> Option<PathBuf> {
        self.run_file
    }

    /// The elapsed and the total time.
    fn time(&self) -> RunTime {
        let elapsed = match self.is_virtual {
            true => self.spent + self.progress.spent,
            false => self.began.elapsed(),
        };
        let own = elapsed + self.progress.left;
        RunTime {
            elapsed,
            // Later experiments get the rest of the budget.
            total: self.total.map_or(own, |budget| own.max(budget)),
            is_bound: self.total.is_none()
                && self.progress.basis == Basis::AtMost
                && !self.leaves_writes,
            may_exceed: self.leaves_writes || self.study_leaves_writes,
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
            done: self.done.clone(),
        };
        screen.offer(move |screen| live::frame(&view, &screen));
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
        output::note_once(&escape_control(message));
    }
}

/// Shortest time between two frames.
const FRAME_EVERY: Duration = Duration::from_millis(250);

/// How long to wait for a frame, so that drawing does not overlap with the next trial.
const WAIT: Duration = Duration::from_millis(5);

/// How long to wait for the end of the view; a blocked terminal would make it infinite.
const WAIT_AT_END: Duration = Duration::from_secs(1);

/// Makes the lines of a frame for a terminal.
type Frame = Box<dyn FnOnce(live::Screen) -> Vec<String> + Send>;

enum Message {
    Frame(Frame),
    /// A permanent line above the view.
    Line(String),
    Clear(Sender<()>),
}

/// Receiver of lines while a view is shown, since other output would be overwritten.
static SHOWN: Mutex<Option<Sender<Message>>> = Mutex::new(None);

/// Prints a line above the view; returns whether there is a view.
fn tell(line: &str) -> bool {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let told = |to: &Sender<Message>| to.send(Message::Line(line.to_owned())).is_ok();
    shown.as_ref().is_some_and(told)
}

/// A view on stderr. Dropping it removes it from the terminal.
pub(crate) struct Screen {
    to: Sender<Message>,
    /// One message for each frame drawn.
    drawn: Receiver<()>,
    /// Whether the last frame is not drawn yet.
    is_late: bool,
    last: Option<Instant>,
    /// Whether the last frame names a step, which may be over by now.
    is_step: bool,
}

impl Screen {
    /// Starts the drawing thread; `None` if that fails.
    pub(crate) fn open() -> Option<Self> {
        output::set_view(tell);
        let (to, messages) = channel();
        let (draws, drawn) = channel();
        let canvas = Canvas::new();
        let draw = move || canvas.follow(&messages, &draws);
        // Not joined, since the terminal may block it forever.
        thread::Builder::new().spawn(draw).ok()?;
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.clone());
        Some(Self {
            to,
            drawn,
            is_late: false,
            last: None,
            is_step: false,
        })
    }

    /// Whether it is time for a frame. What follows a step does not wait: it may take long, and would have the name of the step.
    fn is_due(&mut self) -> bool {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < FRAME_EVERY);
        self.is_drawn() && (self.is_step || !is_soon)
    }

    /// Whether the last frame is on the terminal.
    fn is_drawn(&mut self) -> bool {
        self.is_late = self.is_late && self.drawn.try_recv().is_err();
        !self.is_late
    }

    /// Draws the line of a step that begins, however soon after the last frame.
    fn step(&mut self, line: String) {
        if self.is_drawn() {
            self.draw(|_| vec![line]);
            self.is_step = true;
        }
    }

    /// Draws a frame if it is time.
    fn offer(&mut self, frame: impl FnOnce(live::Screen) -> Vec<String> + Send + 'static) {
        if self.is_due() {
            self.draw(frame);
            self.is_step = false;
        }
    }

    fn draw(&mut self, frame: impl FnOnce(live::Screen) -> Vec<String> + Send + 'static) {
        if self.to.send(Message::Frame(Box::new(frame))).is_err() {
            return;
        }
        self.last = Some(Instant::now());
        self.is_late = self.drawn.recv_timeout(WAIT).is_err();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let (cleared, is_cleared) = channel();
        let _ = self.to.send(Message::Clear(cleared));
        // Writing to a blocked terminal would block: further output stays with the drawing thread.
        if is_cleared.recv_timeout(WAIT_AT_END).is_ok() {
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// The lines on the terminal.
struct Canvas {
    /// The view; the cursor is at the beginning of its last line.
    view: Vec<String>,
    /// Set when the process continues after a stop: others have written below the view.
    goes_on: Arc<AtomicBool>,
}

impl Canvas {
    fn new() -> Self {
        let goes_on = Arc::new(AtomicBool::new(false));
        // Without it, the view is drawn over some lines of the shell.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&goes_on));
        Self {
            view: Vec::new(),
            goes_on,
        }
    }

    /// Draws until all senders are gone.
    fn follow(mut self, messages: &Receiver<Message>, draws: &Sender<()>) {
        for message in messages {
            match message {
                Message::Frame(frame) => {
                    if is_foreground() {
                        let own = screen();
                        // The cursor is in the last line; a full screen would scroll with each line that the user types.
                        let height = own.height.saturating_sub(1);
                        self.draw("", frame(live::Screen { height, ..own }));
                    }
                    let _ = draws.send(());
                }
                Message::Line(line) => {
                    let view = std::mem::take(&mut self.view);
                    self.draw(&format!("{line}\n"), view);
                }
                Message::Clear(cleared) => {
                    self.draw("", Vec::new());
                    let _ = cleared.send(());
                }
            }
        }
    }

    /// Replaces the view, below a permanent text. The cursor stays at the beginning of a line, where the terminal echoes `^C` and the
    /// next frame overwrites it.
    fn draw(&mut self, above: &str, view: Vec<String>) {
        let width = screen().width.max(1);
        // A terminal that is narrower now breaks lines.
        let rows = self
            .view
            .iter()
            .map(|line| columns(line).div_ceil(width).max(1));
        let up = match rows.sum::<usize>().saturating_sub(1) {
            _ if self.goes_on.swap(false, Ordering::Relaxed) => String::new(),
            0 => String::new(),
            up => format!("\x1b[{up}A"),
        };
        self.view = view;
        let text = format!("{up}\r\x1b[J{above}{}\r", self.view.join("\n"));
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Columns that a line takes; codes of colours take none.
fn columns(line: &str) -> usize {
    let parts = line.split('\x1b').enumerate();
    let shown = parts.map(|(place, part)| match place {
        0 => part,
        _ => part.split_once('m').map_or("", |(_, shown)| shown),
    });
    shown.map(UnicodeWidthStr::width).sum()
}

/// The terminal as it is now; with an assumed size if it does not report any.
fn screen() -> live::Screen {
    let size = tcgetwinsize(io::stderr()).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let (width, height) = known.map_or((80, 24), |size| (size.ws_col, size.ws_row));
    live::Screen {
        width: width.into(),
        height: height.into(),
        is_coloured: output::colours_of_stderr(),
    }
}

/// Whether the process is in the foreground of the terminal.
fn is_foreground() -> bool {
    tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}
