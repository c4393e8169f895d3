//! Service levels of a run: the greatest rate at which they hold, or whether they hold at a rate.

use std::time::Duration;

use iolab_analysis::fitness::{Verdict, Verdicts};
use iolab_analysis::slo::{Limit, RatePoint};
use iolab_spec::level::Levels;
use iolab_spec::quantity::{format_percent, significant};
use iolab_spec::units::format_duration;

use crate::fitness::{amount, interval};
use crate::layout::{self, Column, DOUBT_LINES_MAX, LINES_MAX, none, paragraph};
use iolab_spec::plain::plain;

/// Rates that are shown at most: those nearest to the limit. Fewer where the remarks need the lines.
const POINTS_MAX: usize = 8;
/// Rates that are shown in any case.
const POINTS_MIN: usize = 3;
/// Lines before, between and after the rates: two empty ones and the headings.
const LINES_AROUND_POINTS: usize = 3;

/// Overload that trials are too short for, from which on the answer tells it.
const OVERLOAD_TOLD: f64 = 0.03;

/// What a search has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The levels that it is about.
    pub levels: &'a Levels,
    /// What was found.
    pub limit: &'a Limit,
    /// Why its times may say nothing of the storage.
    pub doubts: &'a [String],
    /// How long the trials lasted, the shortest and the longest; `None` without trials.
    pub times: Option<(Duration, Duration)>,
}

impl Searched<'_> {
    /// The rates nearest to the limit as a table.
    pub(crate) fn columns(&self) -> Vec<Column> {
        Self::columns_of(&self.nearest(POINTS_MAX))
    }

    fn columns_of(points: &[RatePoint]) -> Vec<Column> {
        let column = |heading: &str, value: &dyn Fn(&RatePoint) -> String| {
            Column::new(heading, 0, points.iter().map(value))
        };
        vec![
            column("requests/s", &|point| point.rate.to_string()),
            column("trials", &|point| point.trials.to_string()),
            column("kept the level", &|point| point.kept.to_string()),
            column("level", &|point| {
                let level = match point.holds {
                    Some(true) => "holds",
                    Some(false) => "fails",
                    None => "-",
                };
                level.to_owned()
            })
            .left(),
        ]
    }

    /// The answer for a terminal of `width` columns, at most 20 lines.
    pub fn text(&self, width: u16) -> String {
        let mut text = self.head(width);
        let remarks: String = self
            .remarks()
            .iter()
            .map(|remark| paragraph(&plain(remark), "- ", width))
            .collect();
        let taken = text.lines().count() + remarks.lines().count() + LINES_AROUND_POINTS;
        let points = self.nearest(
            LINES_MAX
                .saturating_sub(taken)
                .clamp(POINTS_MIN, POINTS_MAX),
        );
        text.push('\n');
        text += &layout::text(Self::columns_of(&points), width);
        text.push('\n');
        text + &remarks
    }

    /// The answer itself. Where the times may not be those of the storage, that comes first.
    fn head(&self, width: u16) -> String {
        let (first, as_measured) = self.sentences();
        let first = paragraph(&first, "", width);
        match as_measured {
            None => first,
            Some(text) => {
                layout::cut(&first, DOUBT_LINES_MAX, width) + &paragraph(&text, "", width)
            }
        }
    }

    /// The answer, and where it is unknown what was measured.
    pub(crate) fn sentences(&self) -> (String, Option<String>) {
        let name = plain(self.experiment);
        if self.doubts.is_empty() {
            return (format!("{name}: {}", self.sentence()), None);
        }
        let doubt = format!(
            "{name}: cannot tell which rate the storage sustains: {}.",
            plain(&self.doubts.join("; "))
        );
        (doubt, Some(format!("As measured: {}.", self.sentence())))
    }

    /// What limits the answer.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.limit.contradicts {
            remarks.push(
                "The level fails at one rate and holds at a higher one: the target changed during the search, and the interval covers both.".to_owned(),
            );
        }
        if self.limit.holds.is_none() || self.limit.fails.is_none() {
            remarks.push("The interval has an open end. A larger --budget allows more trials, and longer ones at small rates.".to_owned());
        }
        let short = self.times.map(|(_, longest)| longest);
        if let Some((longest, hidden)) =
            short.and_then(|longest| Some((longest, self.hidden(longest)?)))
        {
            remarks.push(format!(
                "In trials of {} an overload of up to {} does not show. A larger --budget makes them longer.",
                format_duration(longest),
                format_percent(hidden)
            ));
        }
        remarks.push(format!(
            "The limit is the rate at which half of the trials{} keep the level. Response times count from the scheduled start of a request. Longer loads, which use up burst credits and caches, are not covered.",
            self.lengths()
        ));
        remarks
    }

    /// ` of 250 ms to 2 s`.
    fn lengths(&self) -> String {
        match self.times {
            Some((least, most)) if least == most => format!(" of {}", format_duration(least)),
            Some((least, most)) => {
                format!(
                    " of {} to {}",
                    format_duration(least),
                    format_duration(most)
                )
            }
            None => String::new(),
        }
    }

    /// The share of requests beyond the capacity that trials of this length do not show; `None` where it is small.
    fn hidden(&self, time: Duration) -> Option<f64> {
        let all = self.levels.all().iter();
        let hidden = all.map(|level| level.time_to_notice(1.0).as_secs_f64() / time.as_secs_f64());
        let greatest = hidden.fold(0.0, f64::max);
        (greatest > OVERLOAD_TOLD).then_some(greatest)
    }

    /// The number, its interval and the level.
    fn sentence(&self) -> String {
        let levels = self.levels;
        let rate = |value: u64| significant(value as f64);
        match (self.limit.holds, self.limit.fails, self.limit.estimate) {
            (Some(holds), Some(fails), estimate) => {
                let middle = (holds as f64 * fails as f64).sqrt();
                format!(
                    "{levels} holds up to {} requests/s (95 % interval {} to {})",
                    significant(estimate.unwrap_or(middle)),
                    rate(holds),
                    rate(fails)
                )
            }
            (Some(holds), None, _) => format!(
                "{levels} holds up to {} requests/s at least; no higher rate was shown to fail",
                rate(holds)
            ),
            (None, Some(fails), _) => format!(
                "{levels} fails from {} requests/s on at the latest; no lower rate was shown to hold",
                rate(fails)
            ),
            (None, None, _) => format!("cannot tell at which rate {levels} holds"),
        }
    }

    /// So many rates nearest to the limit, in their order.
    fn nearest(&self, most: usize) -> Vec<RatePoint> {
        let limit = self.limit;
        let ends = [limit.holds, limit.fails].into_iter().flatten();
        let known: Vec<f64> = limit
            .estimate
            .into_iter()
            .chain(ends.map(|r| r as f64))
            .collect();
        let centre = known.first().copied().unwrap_or(1.0).max(1.0).ln();
        let mut points = limit.points.clone();
        let distance = |point: &RatePoint| ((point.rate.max(1) as f64).ln() - centre).abs();
        points.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        points.truncate(most);
        points.sort_by_key(|point| point.rate);
        points
    }
}

/// Whether levels hold at the rates of a run: a row per cell and level, for a terminal of `width` columns.
pub fn at_rates(found: &Verdicts, width: u16) -> String {
    let mut text = format!("{}\n\n", found.answer);
    text += &layout::text(cell_columns(found), width);
    text.push('\n');
    for remark in cell_remarks(found) {
        text += &paragraph(&plain(&remark), "- ", width);
    }
    text
}

/// A row per cell and level.
pub(crate) fn cell_columns(found: &Verdicts) -> Vec<Column> {
    let column = |heading: &str, value: &dyn Fn(&Verdict) -> String| {
        Column::new(heading, 0, found.all.iter().map(value))
    };
    vec![
        column("cell", &|verdict| plain(&verdict.cell).into_owned()).left(),
        column("level", &|verdict| verdict.judged.level.to_string()).left(),
        column("measured", &|Verdict { judged, .. }| {
            let level = &judged.level;
            judged
                .estimate
                .map_or_else(none, |value| amount(level, value))
        }),
        column("95 % interval", &|verdict| interval(&verdict.judged)),
        column("answer", &|verdict| verdict.answer.to_string()).left(),
    ]
}

/// What leaves an answer open, and what it does not cover.
pub(crate) fn cell_remarks(found: &Verdicts) -> Vec<String> {
    let open = found.all.iter().filter(|v| !v.judged.why.is_empty());
    let whys = open.map(|v| format!("{} {}: {}.", v.cell, v.judged.level, v.judged.why));
    let doubts = found.doubts.iter().map(|doubt| format!("{doubt}."));
    let last = "Of all requests of the measured trials together. Longer loads, which use up burst credits and caches, are not covered.".to_owned();
    doubts.chain(whys).chain([last]).collect()
}
