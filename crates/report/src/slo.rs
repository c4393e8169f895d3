//! Service levels of a run: the highest rate at which they hold, or whether they hold at a rate.

use std::time::Duration;

use crate::notation::clean;
use iolab_analysis::analysis::OVERLOAD_TOLD;
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_analysis::fitness::{
    Answer, CellAnswer, Judged, LevelAnswer, ReasonedAnswer, UnseenStalls, reasoned,
};
use iolab_analysis::slo::{RateAnswer, RatePoint, SearchAnswer};
use iolab_analysis::trial_values::distinct;
use iolab_figure::labels::capital;
use iolab_record::RunRecord;
use iolab_workload::units::{
    between, counted, format_duration, format_ns, format_percent, significant,
};

use crate::block::ShownAnswer;
use crate::doubt;
use crate::layout::{Column, columns_over, none};
use crate::ratio::all_cells;
use iolab_workload::escape_control::escape_control;
use iolab_workload::service_level::{LevelQuantity, ServiceLevel};

/// Most rates shown: the answer's, and those nearest to the limit.
const POINTS_MAX: usize = 8;

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchResult<'a> {
    /// Answer of the search.
    pub found: &'a SearchAnswer,
    /// Whether the run measured its whole plan.
    pub is_complete: bool,
}

impl SearchResult<'_> {
    /// The answer as blocks.
    pub fn shown(&self) -> ShownAnswer {
        let (first, second) = self.sentences();
        let rates = ("The rates nearest to the limit", self.columns());
        ShownAnswer::new((vec![first], second), &[], rates, self.remarks())
    }

    /// The rates nearest to the limit as a table.
    fn columns(&self) -> Vec<Column> {
        let points = self.nearest();
        let column = columns_over(&points);
        vec![
            column("requests/s", 0, &|point| point.rate.to_string()),
            column("trials", 0, &|point| point.trials.to_string()),
            column("kept the level", 0, &|point| point.kept.to_string()),
            column("level", 0, &|point| {
                let keeps = 2 * point.kept > point.trials;
                let level = match (&self.found.holds, &self.found.fails) {
                    (Some(end), _) if point.rate == end.rate || point.rate < end.rate && keeps => {
                        "holds"
                    }
                    (_, Some(end)) if point.rate == end.rate || point.rate > end.rate && !keeps => {
                        "fails"
                    }
                    _ => "-",
                };
                level.to_owned()
            })
            .left(),
        ]
    }

    /// The answer; if it is unknown, also the measured result.
    fn sentences(&self) -> (String, Option<String>) {
        let name = format!("{} on {}", self.found.experiment, self.found.target);
        let name = escape_control(&name);
        let sentence = self.sentence();
        let turned = |end: &Option<RateAnswer>| end.as_ref().map_or(Vec::new(), turning);
        let (holds, fails) = (turned(&self.found.holds), turned(&self.found.fails));
        let what = match (holds.is_empty(), fails.is_empty()) {
            (true, true) if self.found.limit.contradicts => {
                "cannot tell the limit: the level failed at one rate and held at a higher one"
            }
            (true, true) => return (format!("{name}: {sentence}"), None),
            (false, _) => "cannot tell which rate the storage sustains",
            (true, false) => "cannot tell from which rate on the storage fails",
        };
        let doubts = match distinct([holds, fails].concat()).join("; ") {
            none if none.is_empty() => none,
            doubts => format!(": {}", escape_control(&doubts)),
        };
        let open = format!("{name}: {what}{doubts}.");
        (open, Some(format!("As measured: {sentence}.")))
    }

    /// Limits of the answer, with advice.
    fn remarks(&self) -> Vec<String> {
        // The answer names the doubts that turned it, so their remedies must follow here.
        let ends = [&self.found.holds, &self.found.fails].into_iter().flatten();
        let reasons = ends.flat_map(turned_by).chain(&self.found.doubts);
        let mut remarks = distinct(reasons.filter_map(|doubt| doubt::remedy(doubt.what)));
        let cause = self.found.fails.as_ref().and_then(|fails| fails.cause());
        remarks.extend(cause.map(|cause| format!("{}.", capital(&doubt::limit(&cause)))));
        if self.found.limit.contradicts {
            remarks.push(
                "The level fails at one rate and holds at a higher one: the target changed during the search, or it misses the level at times at any rate. A single rate for longer (--rate, --budget) shows how often.".to_owned(),
            );
        }
        if let Some(rate) = &self.found.at_level {
            let levels = rate.found.levels.iter();
            let at = levels.filter(|level| level.judged.is_at_level());
            remarks.extend(at.map(|level| {
                format!(
                    "At {} requests/s, {}: {}. A larger --budget does not decide it there, only another level.",
                    rate.rate,
                    level.judged.level,
                    why(&level.judged)
                )
            }));
        } else if self.found.holds.is_none() || self.found.fails.is_none() {
            remarks.push(format!(
                "The trials do not show both ends.{}",
                self.more_trials()
            ));
        } else if self.found.limit.holds.is_none() || self.found.limit.fails.is_none() {
            remarks.push(format!(
                "The interval has an open end.{}",
                self.more_trials()
            ));
        }
        if let Some((_, longest)) = self.found.times
            && let Some(hidden) = self.hidden(longest)
        {
            remarks.push(format!(
                "In trials of {} an overload of up to {} does not show. A larger --budget makes them longer.",
                format_duration(longest),
                format_percent(hidden)
            ));
        }
        remarks.push("Response times count from the scheduled start of a request.".to_owned());
        let unseen = self.found.unseen_stalls().filter(|_| self.is_complete);
        let holds = self.found.holds.as_ref();
        let holds = holds.filter(|end| turning(end).is_empty());
        let loads = holds.and(self.found.times).map(|(_, longest)| {
            let longest = format_duration(longest);
            format!("loads longer than {longest}, which use up burst credits and caches")
        });
        let not: Vec<String> = loads.into_iter().chain(unseen.map(stalls)).collect();
        remarks.extend((!not.is_empty()).then(|| not_covered(&not.join("; "))));
        remarks
    }

    /// Advice to measure longer. Where a rate fails and no lower one holds, rates without a queue may fail as well.
    fn more_trials(&self) -> &'static str {
        let found = &self.found;
        match found.limit.contradicts || found.holds.is_none() && found.fails.is_some() {
            true => "",
            false => " A larger --budget allows more trials, and longer ones at small rates.",
        }
    }

    /// The share of requests beyond the capacity that trials of this length do not detect; `None` if it is
    /// small.
    fn hidden(&self, time: Duration) -> Option<f64> {
        let all = self.found.levels.all().iter();
        let hidden = all.map(|level| level.time_to_notice(1.0).as_secs_f64() / time.as_secs_f64());
        let greatest = hidden.fold(0.0, f64::max);
        (greatest > OVERLOAD_TOLD).then_some(greatest)
    }

    /// The rate that holds, the one that fails, and the limit between them.
    fn sentence(&self) -> String {
        let (found, levels) = (self.found, &self.found.levels);
        let binds = binding(found);
        let doubts: Vec<String> = found
            .doubts
            .iter()
            .map(|doubt| doubt.what.to_string())
            .collect();
        let doubts = match doubts.is_empty() {
            true => String::new(),
            false => format!(" ({})", doubts.join(", ")),
        };
        match (&found.holds, &found.fails) {
            (Some(holds), Some(fails)) => format!(
                "{levels} holds at {} requests/s, fails at {} requests/s{binds}",
                holds.rate, fails.rate
            ),
            (Some(holds), None) => format!(
                "{levels} holds at {} requests/s; no higher rate was shown to fail{doubts}",
                holds.rate
            ),
            (None, Some(fails)) => format!(
                "{levels} fails at {} requests/s{binds}; no lower rate was shown to hold{doubts}",
                fails.rate
            ),
            (None, None) => {
                let why = match found.reasoned() {
                    ReasonedAnswer::CannotTell(reasons) => in_words(&reasons),
                    ReasonedAnswer::Yes | ReasonedAnswer::No => String::new(),
                };
                format!("cannot tell at which rate {levels} holds: {why}")
            }
        }
    }

    /// The two rates of the answer and those nearest to the limit, in order.
    fn nearest(&self) -> Vec<RatePoint> {
        let limit = &self.found.limit;
        let answers =
            [&self.found.holds, &self.found.fails].map(|end| end.as_ref().map(|end| end.rate));
        let ends = [limit.holds, limit.fails].into_iter().chain(answers);
        let mut known = limit
            .estimate
            .into_iter()
            .chain(ends.flatten().map(|rate| rate as f64));
        let centre = known.next().unwrap_or(1.0).max(1.0).ln();
        let mut points = limit.points.clone();
        let distance = |point: &RatePoint| ((point.rate.max(1) as f64).ln() - centre).abs();
        // The two rates of the answer are shown however far they are from the limit.
        let is_end = |point: &RatePoint| answers.contains(&Some(point.rate));
        points.sort_by(|a, b| {
            let ends_first = is_end(b).cmp(&is_end(a));
            ends_first.then(distance(a).total_cmp(&distance(b)))
        });
        points.truncate(POINTS_MAX);
        points.sort_by_key(|point| point.rate);
        points
    }
}

/// The doubts that turned an end of the answer.
fn turned_by(end: &RateAnswer) -> impl Iterator<Item = &Doubt> {
    end.found.levels.iter().flat_map(|level| &level.turned_by)
}

/// Doubts that turn an end of the answer round, in words.
fn turning(end: &RateAnswer) -> Vec<String> {
    distinct(turned_by(end).map(|doubt| doubt::words(doubt, &end.found.doubts)))
}

/// The level that determines the limit, if there are several: `; p99<2ms binds`.
fn binding(found: &SearchAnswer) -> String {
    let names: Vec<String> = found.binding.iter().map(ServiceLevel::to_string).collect();
    match (found.levels.all().len(), names.as_slice()) {
        (0 | 1, _) | (_, []) => String::new(),
        (_, [one]) => format!("; {one} binds"),
        (_, several) => format!("; {} bind alike", several.join(" and ")),
    }
}

/// The answer in one line that can be pasted: `read-random on /mnt/disk: p99<1ms at rate=2000: yes`.
pub(crate) fn sentence_at_rates(found: &[CellAnswer], record: &RunRecord) -> String {
    let asked = record.experiment.asked.as_ref();
    let levels = asked.map(|question| question.levels().to_string());
    let cells = match found {
        [] => String::new(),
        [only] if only.cell.is_empty() => String::new(),
        [only] => format!(" at {}", only.cell),
        several => {
            let kept = several.iter().filter(|cell| cell.answer() == Answer::Yes);
            match kept.count() {
                n if [0, several.len()].contains(&n) => format!(" in {}", all_cells(several.len())),
                n => format!(" kept in {n} of {} cells", several.len()),
            }
        }
    };
    let text = format!(
        "{} on {}: {}{cells}: {}",
        record.experiment.name,
        record.target_text(),
        levels.unwrap_or_default(),
        in_line(&reasoned(found))
    );
    clean(&text)
}

/// A row per cell and level.
pub(crate) fn cell_columns(found: &[CellAnswer]) -> Vec<Column> {
    let rows = found.iter().flat_map(|cell| {
        let levels = cell.levels.iter();
        levels.map(|level| (&*cell.cell, level, answer(level)))
    });
    level_columns(("cell", 0), &rows.collect::<Vec<_>>())
}

/// Remarks on what leaves an answer open or makes it no, and on what the run's answer does not cover, without
/// repetition.
pub(crate) fn cell_remarks(found: &[CellAnswer], answer: Answer) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    let mut add = |text: String| remarks.push(text);
    for cell in found {
        let of = |text: &str| match cell.cell.as_str() {
            "" => text.to_owned(),
            name => format!("{name}: {text}"),
        };
        for doubt in cell.reasons() {
            add(of(&doubt::sentences(doubt, &cell.doubts)));
        }
        for level in &cell.levels {
            if let Some(cause) = cell.cause(level) {
                add(of(&format!("{}.", doubt::limit(&cause))));
            }
            let judged = &level.judged;
            if judged.open.is_some() {
                let text = format!("{} {}: {}.", cell.cell, judged.level, why(judged));
                add(text.trim_start().to_owned());
            }
        }
    }
    let unseen = found.iter().filter_map(CellAnswer::unseen_stalls);
    let unseen = UnseenStalls::most_frequent(unseen);
    if let Some(unseen) = unseen.filter(|_| answer == Answer::Yes) {
        add(not_covered(&stalls(unseen)));
    }
    distinct(remarks)
}

/// Limits of a yes.
fn not_covered(what: &str) -> String {
    format!("Not covered: {what}.")
}

/// A row per level: the place where it was measured, the level, and its answer.
pub fn level_columns(
    (place, dispensable): (&str, u8),
    rows: &[(&str, &LevelAnswer, String)],
) -> Vec<Column> {
    let column = columns_over(rows);
    vec![
        column(place, dispensable, &|row| clean(row.0)).left(),
        column("level", 0, &|row| row.1.judged.level.to_string()).left(),
        column("measured", 0, &|row| measured(&row.1.judged)),
        column("95 % interval", 0, &|row| interval(&row.1.judged)),
        column("requests", 4, &|row| row.1.judged.requests.to_string()),
        column("answer", 0, &|row| row.2.clone()).left(),
    ]
}

/// The answer in a line: `yes`, `cannot tell: suspended, disturbed`.
pub fn in_line(answer: &ReasonedAnswer) -> String {
    let word = answer.answer();
    match answer {
        ReasonedAnswer::Yes | ReasonedAnswer::No => word.to_string(),
        ReasonedAnswer::CannotTell(reasons) => format!("{word}: {}", in_words(reasons)),
    }
}

/// The reasons: `suspended, few trials`.
pub(crate) fn in_words(reasons: &[DoubtKind]) -> String {
    let texts = reasons.iter().map(DoubtKind::to_string);
    texts.collect::<Vec<_>>().join(", ")
}

/// Reason for an open answer to a level, as a clause; empty if it is not open.
pub fn why(judged: &Judged) -> &'static str {
    judged.open.map_or("", DoubtKind::words)
}

/// An answer with the reason if it is open. If a doubt changed it, also with the result as measured.
pub fn answer(level: &LevelAnswer) -> String {
    let answer = in_line(&level.reasoned());
    match level.turned_by.is_empty() {
        true => answer,
        false => format!("{answer} (measured: {})", level.judged.answer),
    }
}

/// `stalls so rare that 30 trials can miss them (in up to 9.5 % of trials)`. If trials had some, `more stalls
/// than measured (1 of 30 trials missed the level; up to 14.9 % of trials can)`.
pub fn stalls(unseen: UnseenStalls) -> String {
    let share = format_percent(unseen.share);
    match unseen.missed {
        0 => format!(
            "stalls so rare that {} can miss them (in up to {share} of trials)",
            counted(unseen.trials as u64, "trial"),
        ),
        missed => format!(
            "more stalls than measured ({missed} of {} missed the level; up to {share} of trials can)",
            counted(unseen.trials as u64, "trial"),
        ),
    }
}

/// The limited quantity as measured.
pub(crate) fn measured(judged: &Judged) -> String {
    let level = &judged.level;
    judged
        .estimate
        .map_or_else(none, |value| amount(level, value))
}

/// A value of the limited quantity with its unit.
pub fn amount(level: &ServiceLevel, value: f64) -> String {
    match level.quantity {
        LevelQuantity::Iops => format!("{}/s", significant(value)),
        LevelQuantity::Throughput => format!("{} MB/s", significant(value)),
        LevelQuantity::Quantile(_) | LevelQuantity::Mean | LevelQuantity::Max => format_ns(value),
    }
}

/// The interval of the limited quantity.
pub fn interval(judged: &Judged) -> String {
    let level = &judged.level;
    match (judged.low, judged.high) {
        (Some(low), Some(high)) => between(&amount(level, low), &amount(level, high)),
        (Some(low), None) => format!("{} or more", amount(level, low)),
        (None, _) => none(),
    }
}
