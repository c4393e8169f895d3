//! The part of a difference that remains without each suspect.

use iolab_analysis::claim::{Remainder, remainders};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::significant;
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::model::{Axis, FigureModel, Look, Mark, Origin, Panel, Series, Ticks};
use super::super::options::Options;
use super::super::scale::Scale;
use super::axis;

/// Makes the model: a bar for the difference as it is, without each suspect, and without all.
///
/// # Errors
/// Of kind usage: a run that explains nothing, or a difference that does not exist.
pub(in super::super) fn model(runs: &[FigureRun<'_>], _: &Options) -> Result<FigureModel> {
    let [run] = runs else {
        return Err(
            Error::usage("several runs, each with a difference of its own")
                .hint("draw one: iolab plot FILE --kind why"),
        );
    };
    let bars = remainders(run.analysis());
    if bars.is_empty() {
        return Err(Error::usage("the run explains no difference")
            .hint("make one that does: iolab why FILE; or choose another figure with --kind"));
    }
    let names = bars
        .iter()
        .enumerate()
        .map(|(place, bar)| (place as f64, name(bar)));
    let values = bars.iter().flat_map(|bar| {
        let (low, high) = bar
            .left
            .interval
            .unwrap_or((bar.left.share, bar.left.share));
        [100.0, percent(low), percent(high)]
    });
    let width = axis::steps((1.0 + LABEL) * bars.len() as f64);
    let x = Axis::new("Without", width, Ticks::Named(names.collect()));
    let scale = Scale::linear(values, true);
    let y = Axis::new("Remaining difference (%)", scale, Ticks::Number);
    let mut panel = Panel::new(x, y);
    panel.lines.push(super::line_across(50.0, "cause"));
    panel.series.push(Series::of_points(
        String::new(),
        0,
        Look::Bars { place: 0, of: 1 },
        bars.iter().enumerate().map(mark).collect(),
    ));
    let phenomenon = run
        .analysis()
        .inquiry
        .as_ref()
        .map_or("", |one| &one.phenomenon);
    Ok(FigureModel {
        description: format!("Remaining share without each suspect: {phenomenon}"),
        note: format!(
            "Share of the logarithm of the ratio of both sides, within the blocks that variants share; vertical lines: 95 % interval.{}{}",
            reversed(&bars),
            suspects(&bars)
        ),
        ..FigureModel::of(vec![panel])
    })
}

/// The share of the width that the label of the line takes, right of all bars.
const LABEL: f64 = 0.08;

fn percent(share: f64) -> f64 {
    100.0 * share.max(0.0)
}

/// The remaining part without a suspect, in words: a bar does not show that a difference is reversed.
fn left(bar: &Remainder) -> String {
    match bar.is_reversed {
        true => "the difference is reversed".to_owned(),
        false => format!("{} % left", significant(percent(bar.left.share))),
    }
}

/// The bars of a reversed difference, which have no height.
fn reversed(bars: &[Remainder]) -> String {
    let names = bars.iter().filter(|bar| bar.is_reversed).map(name);
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            " Reversed, and without a bar: {}.",
            escape_control(&names.join(", "))
        ),
    }
}

/// Explains the names of the suspects, in the words of findings.
fn suspects(bars: &[Remainder]) -> String {
    let named = bars.iter().filter(|bar| !bar.what().is_empty());
    let named: Vec<String> = named
        .map(|bar| format!("{}: {}", name(bar), bar.what()))
        .collect();
    match named.as_slice() {
        [] => String::new(),
        named => format!(" {}.", escape_control(&named.join("; "))),
    }
}

/// `nothing`, `read-ahead`, `all`.
fn name(bar: &Remainder) -> String {
    match bar.without.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        _ => "all".to_owned(),
    }
}

fn mark((place, bar): (usize, &Remainder)) -> Mark {
    let interval = bar.left.interval.filter(|_| !bar.without.is_empty());
    Mark {
        x: place as f64,
        y: percent(bar.left.share),
        interval: interval.map(|(low, high)| (percent(low), percent(high))),
        hollow: false,
        origin: Origin {
            x: name(bar),
            text: match bar.what() {
                "" => format!("without {}: {}", name(bar), left(bar)),
                what => format!("without {what}: {}", left(bar)),
            },
            ..Origin::default()
        },
    }
}
