//! What is left of a difference without each suspect.

use iolab_analysis::claim::{Remainder, remainders};
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::labels;
use super::super::model::{
    Along, Axis, FigureModel, Look, Mark, Origin, Panel, ReferenceLine, Series, Ticks,
};
use super::super::options::Options;
use super::super::scale::Scale;

/// Makes the model: a bar for the difference as it is, without each suspect, and without all.
///
/// # Errors
/// Of kind usage: a run that explains nothing, or a difference that is not there.
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
    let x = Axis {
        label: "taken away".to_owned(),
        scale: Scale::Linear {
            low: -0.5,
            high: bars.len() as f64 - 0.5,
        },
        ticks: Ticks::Named(names.collect()),
    };
    let y = Axis {
        label: "Difference that is left (%)".to_owned(),
        scale: Scale::linear(values, true),
        ticks: Ticks::Number,
    };
    let mut panel = Panel::new(x, y);
    panel.lines.push(ReferenceLine {
        along: Along::X,
        at: 50.0,
        label: "cause".to_owned(),
    });
    panel.series.push(Series {
        name: String::new(),
        place: 0,
        look: Look::Bars { place: 0, of: 1 },
        points: bars.iter().enumerate().map(mark).collect(),
        band: Vec::new(),
        trials: Vec::new(),
        bends: Vec::new(),
    });
    let phenomenon = run
        .analysis()
        .inquiry
        .as_ref()
        .map_or("", |one| &one.phenomenon);
    Ok(FigureModel {
        description: format!("What is left without each suspect of: {phenomenon}"),
        note: "Share of the logarithm of the ratio of both sides, within the blocks that variants share; bars: 95 % interval."
            .to_owned(),
        ..FigureModel::of(vec![panel])
    })
}

fn percent(share: f64) -> f64 {
    100.0 * share.clamp(0.0, 2.0)
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
    let left = percent(bar.left.share);
    let interval = bar.left.interval.filter(|_| !bar.without.is_empty());
    Mark {
        x: place as f64,
        y: left,
        interval: interval.map(|(low, high)| (percent(low), percent(high))),
        hollow: false,
        origin: Origin {
            x: name(bar),
            text: format!("without {}: {} % left", name(bar), labels::number(left)),
            ..Origin::default()
        },
    }
}
