//! A run in progress on a terminal: its cells with their intervals.

use std::time::Duration;

use crate::notation::clean;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::snapshot::{RepetitionGoal, RunSnapshot, WithinGoal};
use iolab_workload::units::format_percent;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::findings::conclusions;
use crate::findings::sentences::in_percent;
use crate::layout::{self, Column, level_columns, none};
use crate::table::{bare, range};

/// The content of a live view.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveView {
    /// The command that was started: `iolab study /mnt/disk   quick`.
    pub title: String,
    /// The progress.
    pub time: RunTime,
    /// The current experiment, with its position among several: `4/7 read-stride`.
    pub experiment: String,
    /// The results of its cells so far.
    pub run: RunSnapshot,
    /// Results of earlier experiments, each from [`result`].
    pub done: Vec<String>,
}

/// The progress of a run as a single quantity, so that no two numbers contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTime {
    /// Time since the first trial.
    pub elapsed: Duration,
    /// Forecast of the total time.
    pub total: Duration,
    /// Whether it may end earlier.
    pub is_bound: bool,
    /// Whether it may end later, because nothing foresees how slowly caches are written out.
    pub may_exceed: bool,
    /// Whether it is virtual time of a model.
    pub is_virtual: bool,
}

/// A terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Available columns.
    pub width: usize,
    /// Available lines.
    pub height: usize,
    /// Whether it supports colours.
    pub is_coloured: bool,
}

/// Smallest widths of the number of trials, of the response, of the precision and of the interval, so that columns do not move while numbers
/// grow.
const COUNT_MIN: usize = 3;
const RESPONSE_MIN: usize = WARM_UP.len();
const PRECISION_MIN: usize = 6;
const INTERVAL_MIN: usize = 16;
/// Shown instead of a value during the first trial of a cell, which does not count.
const WARM_UP: &str = "warm-up";
/// Mark after the cell that is being measured.
const NOW: &str = "<- now";
/// Most lines of earlier results.
const DONE_MAX: usize = 2;

/// Codes of the terminal for the cell being measured, and for one that has reached the precision goal.
const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";

/// A line, and the code before it; empty for none.
type Line = (String, &'static str);

/// The view as lines that fit the screen. Deterministic.
pub fn frame(view: &LiveView, screen: &Screen) -> Vec<String> {
    let plain = |text: String| (text, "");
    let mut lines: Vec<_> = head(view, screen.width).into_iter().map(plain).collect();
    let done = done(&view.done, screen.width);
    let room = screen.height.saturating_sub(lines.len() + done.len());
    lines.extend(table(&view.run, screen.width, room));
    lines.extend(done.into_iter().map(plain));
    lines.truncate(screen.height);
    let line = |(text, code): Line| {
        let text = cut(text.trim_end(), screen.width);
        match code {
            "" => text,
            _ if !screen.is_coloured => text,
            code => format!("{code}{text}\x1b[0m"),
        }
    };
    lines.into_iter().map(line).collect()
}

/// The title, the progress, and the current experiment.
fn head(view: &LiveView, width: usize) -> Vec<String> {
    let percent = |share: Option<f64>| share.map(|share| format!("{:.0} %", share * 100.0));
    let last = view.run.last;
    let of = |name: &str, text: Option<String>| text.map(|text| format!("{name} {text}"));
    let meanwhile = [
        of("other traffic", percent(last.and_then(|last| last.others))),
        of("CPU", percent(last.and_then(|last| last.cpu))),
    ];
    let known = [Some(clean(&view.title)), Some(view.time.to_string())];
    let parts = known.into_iter().chain(meanwhile).flatten();
    let mut lines = packed(parts, "", width);
    lines.extend(packed(
        [clean(&view.experiment), state(&view.run)],
        "",
        width,
    ));
    lines
}

/// `3 of 6 cells precise to 5 %`.
pub fn within_goal(within: WithinGoal) -> String {
    let WithinGoal { cells, of, goal } = within;
    format!("{cells} of {of} cells precise to {}", in_percent(goal))
}

/// `3 of 6 cells precise to 5 %`, or `round 7 of at most 25`.
fn state(run: &RunSnapshot) -> String {
    match run.goal {
        RepetitionGoal::Precision(goal) => within_goal(run.within(goal)),
        RepetitionGoal::SteadyRounds { round, most } => format!("round {round} of at most {most}"),
        RepetitionGoal::Rate => "searching for a rate".to_owned(),
        RepetitionGoal::OneTrial => "one trial per cell".to_owned(),
    }
}

impl std::fmt::Display for RunTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, bound) = (
            if self.is_virtual { "virtual time " } else { "" },
            if self.is_bound { "at most " } else { "" },
        );
        let after = if self.may_exceed { " or more" } else { "" };
        let (elapsed, total) = (clock(self.elapsed), clock(self.total));
        write!(f, "{before}{elapsed} of {bound}{total}{after}")
    }
}

/// `01:04`, or `1:04:00` from an hour on.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Earlier results in the available lines; the first ones are dropped.
fn done(results: &[String], width: usize) -> Vec<String> {
    const MARK: &str = "done: ";
    let mut first = 0;
    loop {
        let left_out = (first > 0).then(|| format!("{first} more"));
        let shown = results[first..].iter();
        let shown = shown.map(|text| clean(text));
        let lines = packed(left_out.into_iter().chain(shown), MARK, width);
        if lines.len() <= DONE_MAX {
            return lines;
        }
        first += 1;
    }
}

/// Parts in lines that fit, with three columns between them; the first line begins with `mark`.
fn packed(parts: impl IntoIterator<Item = String>, mark: &str, width: usize) -> Vec<String> {
    const APART: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.width() + APART.len() + part.width() <= width => {
                line.push_str(APART);
                line.push_str(&part);
            }
            Some(_) => lines.push(" ".repeat(mark.len()) + &part),
            None => lines.push(mark.to_owned() + &part),
        }
    }
    lines
}

/// The heading, then the rows of as many cells as fit, including the one being measured.
fn table(run: &RunSnapshot, width: usize, room: usize) -> Vec<Line> {
    let all = run.cells.len();
    let shown = match all < room {
        true => all,
        false => room.saturating_sub(2),
    };
    let mut cells: Vec<usize> = (0..shown).collect();
    if let Some(last) = cells.last_mut()
        && run.now >= shown
    {
        *last = run.now;
    }
    let text = layout::text(
        columns(run, &cells, width),
        u16::try_from(width).unwrap_or(u16::MAX),
    );
    let emphases = cells.iter().map(|cell| emphasis(run, *cell));
    let heads = text.lines().count().saturating_sub(cells.len());
    let emphases = std::iter::repeat_n("", heads).chain(emphases);
    let lines = text.lines().map(str::to_owned).zip(emphases);
    let more = (shown < all).then(|| (format!("and {} more cells", all - shown), ""));
    lines.chain(more).collect()
}

fn emphasis(run: &RunSnapshot, place: usize) -> &'static str {
    match run.goal {
        _ if place == run.now => BOLD,
        RepetitionGoal::Precision(goal) if run.cells[place].is_within(goal) => GREEN,
        _ => "",
    }
}

/// Levels, number of trials, response, interval where it has room, precision, and which cell is being measured.
fn columns(run: &RunSnapshot, cells: &[usize], width: usize) -> Vec<Column> {
    let levels = cells.iter().map(|cell| run.cells[*cell].levels.as_slice());
    let mut columns = level_columns(&run.factors, levels);
    let column = |heading: &str, value: &dyn Fn(usize) -> String| {
        Column::new(heading, 0, cells.iter().map(|cell| value(*cell)))
    };
    let goal = match run.goal {
        RepetitionGoal::Precision(goal) => format!("goal {}", in_percent(goal)),
        _ => String::new(),
    };
    columns.extend([
        column("n", &|cell| format!("{:COUNT_MIN$}", run.cells[cell].n)),
        column(run.response.heading(), &|cell| {
            format!("{:>RESPONSE_MIN$}", value(run, cell))
        }),
        column("+/-", &|cell| {
            let precision = run.cells[cell].precision();
            let text = precision.map_or_else(none, format_percent);
            format!("{text:>PRECISION_MIN$}")
        }),
        column(&goal, &|cell| match cell == run.now {
            true => NOW.to_owned(),
            false => String::new(),
        })
        .left(),
    ]);
    let interval = column("95 % interval", &|cell| {
        let interval = run.cells[cell].response.and_then(|of| of.median_interval);
        let text = interval.map_or_else(none, |own| range(run.response, &own));
        format!("{text:>INTERVAL_MIN$}")
    });
    if interval.width() <= layout::room_beside(&columns, width) {
        columns.insert(columns.len() - 2, interval);
    }
    columns
}

/// The median of a cell, as in the table.
fn value(run: &RunSnapshot, place: usize) -> String {
    let cell = &run.cells[place];
    if cell.n == 0 && run.warms_up && place == run.now {
        return WARM_UP.to_owned();
    }
    let median = cell.response.map(|response| response.median);
    median.map_or_else(none, |median| bare(run.response, median))
}

/// The result of a run in one line.
pub fn result(analysis: &Analysis) -> String {
    let lines = conclusions(analysis, &[]).into_iter();
    lines.map(|line| line.text).collect::<Vec<_>>().join("; ")
}

/// The text, cut to this many columns.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}
