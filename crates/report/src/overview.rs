//! Several runs on one screen: what was measured and how reliable it is, the main numbers, a small curve of each experiment, and
//! the most important findings.

use std::collections::BTreeSet;

use crate::findings::capitalised;
use crate::findings::digest::{Digest, Headline, Told};
use crate::findings::trust::{Reason, Trust};
use iolab_analysis::analysis::MeasuredTarget;
use iolab_analysis::headline_numbers::{AccessOperation, AccessOrder, HeadlineCell, HeadlineRate};
use iolab_analysis::sparkline::Sparkline;
use iolab_record::environment::KEYS;
use iolab_record::{RunRecord, ServedBy, TargetKind};
use iolab_workload::Result;
use iolab_workload::quantity::{counted, format_bytes, format_ns, format_percent, significant};
use iolab_workload::units::{format_size, rough_duration};

use crate::chart::Style;
use crate::input::{Input, experiments};
use crate::layout::{self, Column, none, paragraph};
use crate::panels;
use iolab_figure::preview_image;
use iolab_workload::escape_control::escape_control;

/// Most lines of an overview at 80 columns or more, including the lines after it in a study.
const LINES_MAX: usize = 40;
/// Most lines of a run with few cells at 80 columns or more, if its table permits.
const RUN_LINES_MAX: usize = 32;
/// Most cells that count as few.
const FEW_CELLS: usize = 12;
/// Fewest lines of findings.
const FINDINGS_LINES_MIN: usize = 6;
/// Number of lines that a command adds: paths of the report and the run files.
const LINES_BELOW: usize = 6;
/// Most lines of caveats.
const CAVEAT_LINES: usize = 5;
/// Most experiments named in a statement; for more it gives their number.
const NAMED_MAX: usize = 3;

/// Characters of what a target is in a row of the glance.
const DESCRIPTION_WIDTH: usize = 24;

/// Runs, and what a page about them begins with.
#[derive(Debug)]
pub struct Overview<'a> {
    pub(crate) inputs: Vec<&'a Input>,
    pub(crate) digest: Digest<'a>,
}

impl<'a> Overview<'a> {
    /// Of runs in the order of time.
    pub fn new(inputs: impl IntoIterator<Item = &'a Input>) -> Self {
        let inputs: Vec<&Input> = inputs.into_iter().collect();
        let told = inputs.iter().map(|input| Told {
            run: &input.run,
            interpretation: &input.interpretation,
        });
        Self {
            digest: Digest::of(&told.collect::<Vec<_>>()),
            inputs,
        }
    }

    /// Text that, with the lines after it, has at most 40 lines.
    pub fn text(&self, style: &Style) -> String {
        let mut head = String::new();
        for text in self.answers() {
            head.push_str(&paragraph(&text, "", style.width));
        }
        if !head.is_empty() {
            head.push('\n');
        }
        for text in [self.subject(), trust(&self.digest.trust)] {
            head.push_str(&paragraph(&text, "", style.width));
        }
        head.push('\n');
        head.push_str(&self.glance(style.width));
        let outlines: Vec<(String, Sparkline)> = self
            .outlines()
            .into_iter()
            .map(|(_, name, outline)| (name, outline))
            .collect();
        let caveats = self.caveats(CAVEAT_LINES, style.width);
        let left = |head: &str| {
            let used = head.lines().count() + caveats.lines().count() + LINES_BELOW;
            LINES_MAX.saturating_sub(used)
        };
        // Findings come before curves, which the page has as well.
        let all = self.findings(usize::MAX, style.width);
        let drawn = match outlines.is_empty() {
            true => head.clone(),
            false => format!("{head}\n{}", panels::text(&outlines, style)),
        };
        let head = match all.lines().count() <= left(&drawn) {
            true => drawn,
            false => head,
        };
        let findings = left(&head).max(FINDINGS_LINES_MIN);
        let findings = self.findings(findings, style.width);
        head + &findings + &caveats
    }

    /// Findings and caveats for the end of a single run whose text has `used` lines so far: for few cells as many as fit on a
    /// screen, and always some.
    pub fn findings_text(&self, used: usize, width: u16) -> String {
        if self.digest.trust.cells > FEW_CELLS {
            return self.findings(usize::MAX, width) + &self.caveats(CAVEAT_LINES, width);
        }
        let left = RUN_LINES_MAX.saturating_sub(used);
        // Includes the empty line before the caveats.
        let least = FINDINGS_LINES_MIN + 1;
        let caveats = self.caveats(left.saturating_sub(least).clamp(1, CAVEAT_LINES), width);
        let lines = left.saturating_sub(caveats.lines().count());
        self.findings(lines.max(FINDINGS_LINES_MIN), width) + &caveats
    }

    /// What was measured, and on what.
    pub(crate) fn subject(&self) -> String {
        let records = || self.inputs.iter().map(|input| input.run.record());
        let measured = || {
            records()
                .flat_map(|r| &r.samples)
                .filter(|s| s.is_measured())
        };
        // Saturates, since a damaged file may have any numbers.
        let times = records().flat_map(|r| &r.samples).map(|s| s.wall_ns);
        let spent = times.fold(0, u64::saturating_add);
        let targets: BTreeSet<String> = records().flat_map(RunRecord::target_names).collect();
        let targets: Vec<String> = targets
            .into_iter()
            .map(|t| escape_control(&t).into_owned())
            .collect();
        let mut text = format!(
            "Measured: {}, {}, {} in {}, on {}",
            experiments(self.inputs.iter().copied()),
            counted(self.digest.trust.cells, "cell"),
            counted(measured().count(), "trial"),
            rough_duration(std::time::Duration::from_nanos(spent)),
            targets.join(", "),
        );
        let one_target = targets.len() == 1;
        let place = records().next().filter(|_| one_target).map(|first| {
            let known = |key| {
                first
                    .environment
                    .get(key)
                    .map(|t: String| escape_control(&t).into_owned())
            };
            let parts = [
                Some(format!(
                    "{} of {}",
                    kind(first.run.target_kind),
                    format_bytes(first.run.target_bytes as f64)
                )),
                known(&KEYS.file_system),
                known(&KEYS.device).map(|device| match known(&KEYS.device_model) {
                    Some(model) => format!("{device} ({})", model.trim()),
                    None => device,
                }),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        });
        if let Some(place) = place {
            text.push_str(&format!(" ({place})"));
        }
        text + "."
    }

    /// One line per target: `/mnt/disk: sequential 1MiB read 2351, write 1990 MB/s; random 4KiB read 14820 IOPS (the most of 1 to
    /// 32 in flight; +/- 3.0 % at most); trust: good`. Empty where no run measured any of the main numbers.
    fn answers(&self) -> Vec<String> {
        let rows = &self.digest.glance.rows;
        let mut targets: Vec<&str> = rows.iter().map(|row| row.target).collect();
        targets.dedup();
        let line = |target: &str| {
            let runs = self.inputs.iter().map(|input| &input.run);
            let runs = runs.filter(|run| run.analysis().target == target);
            let runs: Vec<_> = runs.collect();
            // A run with several targets counts for all of them.
            let trust = match runs.is_empty() {
                true => self.digest.trust.clone(),
                false => Trust::of(&runs),
            };
            let reason = trust
                .reason
                .map_or_else(String::new, |reason| format!(" ({})", in_words(reason)));
            let own = rows.iter().filter(|row| row.target == target);
            let own: Vec<&HeadlineCell<'_>> = own.collect();
            let text = format!(
                "{target}: {} ({}); trust: {}{reason}",
                fastest(&own),
                reach(&own),
                trust.level.name()
            );
            escape_control(&text).into_owned()
        };
        targets.into_iter().map(line).collect()
    }

    /// The main numbers as a table, or a line instead where no run measured any.
    fn glance(&self, width: u16) -> String {
        let rows = &self.digest.glance.rows;
        if rows.is_empty() {
            return "No run measured sequential or random access by itself; see the curves.\n"
                .to_owned();
        }
        let note = match self.glance_note() {
            "" => String::new(),
            note => format!("{note}\n"),
        };
        layout::text(self.glance_columns(), width) + &note
    }

    /// A note about the main numbers; may be empty.
    pub(crate) fn glance_note(&self) -> &'static str {
        let glance = &self.digest.glance;
        match !glance.varies_in_target() && glance.rows.iter().any(has_no_tail) {
            true => "* fewer than 368 requests per trial: close to the maximum",
            false => "",
        }
    }

    /// The main numbers as a PNG picture of 1200 by 630 pixels; `None` for none.
    ///
    /// # Errors
    ///
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be drawn.
    pub fn picture(&self) -> Result<Option<Vec<u8>>> {
        let numbers = self.picture_numbers();
        match numbers.is_empty() {
            true => Ok(None),
            false => preview_image::png(&numbers, &self.picture_words().borrowed()).map(Some),
        }
    }

    /// The same as SVG for a page, with ids that begin with `id`.
    pub(crate) fn picture_svg(&self, id: &str) -> Option<String> {
        let numbers = self.picture_numbers();
        let svg = || preview_image::svg(&numbers, &self.picture_words().borrowed(), id);
        (!numbers.is_empty()).then(svg)
    }

    /// The columns of the glance: a row per kind of access, of several targets a row per target.
    pub(crate) fn glance_columns(&self) -> Vec<Column> {
        match self.digest.glance.varies_in_target() {
            true => self.targets_side_by_side(),
            false => self.accesses_of_one_target(),
        }
    }

    /// A row per target, with the median of each kind of access.
    fn targets_side_by_side(&self) -> Vec<Column> {
        let glance = &self.digest.glance;
        let kind = |row: &HeadlineCell<'_>| {
            let size = row.cell.cell.trial().bs;
            (row.order, size, row.operation, row.in_flight())
        };
        let (mut targets, mut kinds) = (Vec::new(), Vec::new());
        for row in &glance.rows {
            if !targets.contains(&row.target) {
                targets.push(row.target);
            }
            if !kinds.contains(&kind(row)) {
                kinds.push(kind(row));
            }
        }
        kinds.sort_by_key(|(order, _, operation, flight)| {
            (*order, std::cmp::Reverse(*flight), *operation)
        });
        let names = targets.iter().map(|t| escape_control(t).into_owned());
        let is = targets.iter().map(|target| {
            let all = self
                .inputs
                .iter()
                .flat_map(|input| &input.run.analysis().targets);
            let found = all
                .filter(|one| one.name == *target)
                .map(description)
                .next();
            found.unwrap_or_else(none)
        });
        let mut columns = vec![
            Column::new("at a glance", 0, names).left(),
            Column::new("disk", 2, is.collect::<Vec<_>>())
                .left()
                .breaking(DESCRIPTION_WIDTH),
        ];
        for one in kinds {
            let of = |target: &&str| {
                let mut own = glance.rows.iter();
                own.find(|row| row.target == *target && kind(row) == one)
            };
            let (order, size, operation, in_flight) = one;
            let rate = |row: Option<&HeadlineCell<'_>>| row.and_then(HeadlineCell::rate);
            let unit = targets
                .iter()
                .find_map(|target| Some(rate(of(target))?.unit));
            let flight = match glance.varies_in_flight() {
                true => format!(", {in_flight} in flight"),
                false => String::new(),
            };
            let heading = format!(
                "{} {} {}{flight}, {}",
                order.name().to_lowercase(),
                format_size(size),
                operation.name(),
                unit.unwrap_or_default()
            );
            let text = |row: &HeadlineCell<'_>| {
                let rate = row.rate()?;
                let precision = rate.precision.map_or_else(String::new, |precision| {
                    format!(" +/- {}", format_percent(precision))
                });
                let origin = row.cell.served.as_ref().filter(|_| !row.cell.is_target());
                let origin = origin.map_or_else(String::new, |served| format!(" [{served}]"));
                Some(format!("{}{precision}{origin}", significant(rate.value)))
            };
            let values = targets
                .iter()
                .map(|target| of(target).and_then(text).unwrap_or_else(none));
            columns.push(Column::new(heading, 0, values.collect::<Vec<_>>()));
        }
        columns
    }

    fn accesses_of_one_target(&self) -> Vec<Column> {
        let glance = &self.digest.glance;
        let rows = &glance.rows;
        let column = |heading: &str, dispensable, value: &dyn Fn(&HeadlineCell<'_>) -> String| {
            Column::new(heading, dispensable, rows.iter().map(value))
        };
        let mut columns = vec![
            column("at a glance", 0, &access).left(),
            column("operation", 0, &|row| row.operation.name().to_owned()).left(),
        ];
        if glance.varies_in_flight() {
            columns.push(column("in flight", 0, &|row| row.in_flight().to_string()));
        }
        columns.extend([
            column("median", 0, &|row| row.rate().map_or_else(none, value)),
            column("+/-", 0, &|row| {
                let precision = row.rate().and_then(|rate| rate.precision);
                precision.map_or_else(none, format_percent)
            }),
            column("p50", 0, &|row| {
                row.cell.latency.map_or_else(none, |l| format_ns(l.p50_ns))
            }),
            column("p99", 0, &|row| {
                let star = if has_no_tail(row) { "*" } else { "" };
                let p99 = row.cell.latency.map(|l| format_ns(l.p99_ns));
                p99.map_or_else(none, |p99| p99 + star)
            }),
        ]);
        if !rows.iter().all(|row| row.cell.is_device()) {
            columns.push(
                column("served by", 0, &|row| {
                    row.cell
                        .served
                        .as_ref()
                        .map_or_else(none, ToString::to_string)
                })
                .left(),
            );
        }
        columns
    }

    /// Index, name and sparkline of each run that has one.
    pub(crate) fn outlines(&self) -> Vec<(usize, String, Sparkline)> {
        let named = self
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(number, input)| {
                let analysis = input.run.analysis();
                let is_alike =
                    |other: &&&Input| other.run.analysis().experiment == analysis.experiment;
                let name = match self.inputs.iter().filter(is_alike).count() {
                    1 => analysis.experiment.clone(),
                    _ => format!("{} on {}", analysis.experiment, analysis.target),
                };
                Some((number, name, Sparkline::of(analysis)?))
            });
        let drawn = |outline: &Sparkline| {
            outline.levels.len() > 2 && outline.curves.iter().any(|curve| curve.points.len() > 2)
        };
        named.filter(|(_, _, outline)| drawn(outline)).collect()
    }

    /// As many headlines as fit into this number of lines.
    fn findings(&self, lines: usize, width: u16) -> String {
        let heading = "\nWhat matters\n";
        let mut text = heading.to_owned();
        let mut left = lines.saturating_sub(3);
        let mut number = 1;
        for headline in &self.digest.headlines {
            let sentence = format!("{}{}", self.about(headline), headline.text);
            let block = paragraph(&escape_control(&sentence), &format!("{number}. "), width);
            let needed = block.lines().count();
            if needed > left {
                continue;
            }
            left -= needed;
            number += 1;
            text.push_str(&block);
        }
        match self.digest.headlines.len() + 1 - number {
            0 => {}
            n if number > 1 => {
                text.push_str(&paragraph(&format!("and {n} more: --full"), "   ", width))
            }
            n => text.push_str(&paragraph(&format!("{n} findings: --full"), "   ", width)),
        }
        if text == heading { String::new() } else { text }
    }

    /// The runs that a headline is about, where there are several and its text does not name them.
    pub(crate) fn about(&self, headline: &Headline) -> String {
        if self.inputs.len() < 2 || headline.names_runs {
            return String::new();
        }
        let targets: BTreeSet<&str> = self
            .inputs
            .iter()
            .map(|input| input.run.analysis().target.as_str())
            .collect();
        let mut names: Vec<String> = Vec::new();
        for input in headline.runs.iter().filter_map(|run| self.inputs.get(*run)) {
            let run = input.run.analysis();
            let name = match targets.len() > 1 && !headline.names_targets {
                true => format!("{} on {}", run.experiment, run.target),
                false => run.experiment.clone(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.len() {
            0 => String::new(),
            n if n > NAMED_MAX => format!("{n} experiments: "),
            _ => format!("{}: ", names.join(", ")),
        }
    }

    /// What limits the numbers, with an empty line in front; empty where nothing does. Whole caveats, in at most so many lines.
    pub fn caveats(&self, lines: usize, width: u16) -> String {
        let texts = self.caveat_words();
        if texts.is_empty() {
            return String::new();
        }
        // Whole caveats only.
        let block = |shown: usize| {
            let more = match texts.len() - shown {
                0 => String::new(),
                n => format!("; and {n} more (--full)"),
            };
            let all = format!("Caveats: {}{more}.", texts[..shown].join("; "));
            paragraph(&escape_control(&all), "", width)
        };
        let fits = |shown: &usize| block(*shown).lines().count() <= lines;
        let shown = (1..=texts.len()).rev().find(fits).unwrap_or(1);
        format!("\n{}", block(shown))
    }

    /// Every caveat with its number of cells.
    pub(crate) fn caveat_words(&self) -> Vec<String> {
        let words = self.digest.caveats.iter().map(|caveat| match caveat.cells {
            0 => caveat.text.clone(),
            n => format!("{} ({})", caveat.text, counted(n, "cell")),
        });
        words.collect()
    }
}

/// What a target is, in words: `Samsung SSD 990 (nvme0n1), 2.00 TB, ext4`.
fn description(target: &MeasuredTarget) -> String {
    let of_model = target.kind == TargetKind::Model;
    let device = target.device.as_deref().map(str::to_owned);
    let disk = match (target.model.as_deref().map(str::trim), device) {
        (Some(model), _) if of_model => Some(model.to_owned()),
        (Some(model), Some(device)) => Some(format!("{model} ({device})")),
        (None, Some(device)) => Some(device),
        (model, None) => model.map(str::to_owned),
    };
    let size = target.bytes.map(|bytes| format_bytes(bytes as f64));
    let parts = [disk, size, target.file_system.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => kind(target.kind).to_owned(),
        false => escape_control(&parts.join(", ")).into_owned(),
    }
}

/// `sequential 1MiB read 2351, write 1990 MB/s; random 4KiB read 14820 IOPS`: of each kind of access the fastest row.
fn fastest(rows: &[&HeadlineCell<'_>]) -> String {
    let of_order = |order: AccessOrder| {
        let best = AccessOperation::ALL.iter().filter_map(|operation| {
            let own = rows
                .iter()
                .filter(|row| row.order == order && row.operation == *operation);
            let rated = own.filter_map(|row| Some((*row, row.rate()?)));
            rated.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
        });
        let best: Vec<(&HeadlineCell<'_>, HeadlineRate)> = best.collect();
        let (first, rate) = best.first()?;
        let values: Vec<String> = best
            .iter()
            .map(|(row, rate)| format!("{} {}", row.operation.name(), significant(rate.value)))
            .collect();
        Some(format!(
            "{} {} {} {}",
            order.name().to_lowercase(),
            format_size(first.cell.cell.trial().bs),
            values.join(", "),
            rate.unit
        ))
    };
    let orders = AccessOrder::ALL.into_iter().filter_map(of_order);
    orders.collect::<Vec<String>>().join("; ")
}

/// `the most of 1 to 32 in flight; +/- 3.0 % at most`.
fn reach(rows: &[&HeadlineCell<'_>]) -> String {
    let in_flight = || rows.iter().map(|row| row.in_flight());
    let (least, most) = (in_flight().min(), in_flight().max());
    let in_flight = match (least, most) {
        (Some(least), Some(most)) if least != most => {
            format!("the most of {least} to {most} in flight; ")
        }
        (Some(1), _) => "one at a time; ".to_owned(),
        (Some(all), _) => format!("{all} in flight; "),
        (None, _) => String::new(),
    };
    let rates: Vec<HeadlineRate> = rows.iter().filter_map(|row| row.rate()).collect();
    let widest = rates
        .iter()
        .map(|rate| rate.precision)
        .collect::<Option<Vec<f64>>>();
    let widest = widest.and_then(|all| all.into_iter().max_by(f64::total_cmp));
    match widest {
        Some(widest) => format!("{in_flight}+/- {} at most", format_percent(widest)),
        None => format!("{in_flight}too few trials for some intervals"),
    }
}

pub(crate) fn access(row: &HeadlineCell<'_>) -> String {
    let size = format_size(row.cell.cell.trial().bs);
    format!("{} {size}", row.order.name())
}

pub(crate) fn value(rate: HeadlineRate) -> String {
    format!("{} {}", significant(rate.value), rate.unit)
}

fn has_no_tail(row: &HeadlineCell<'_>) -> bool {
    row.cell.latency.is_some() && !row.has_tail()
}

/// The verdict about reliability with its basis.
pub(crate) fn trust(trust: &Trust) -> String {
    let mut parts = Vec::new();
    for (verdict, cells) in &trust.served {
        let all = *cells == trust.cells;
        let count = match all {
            true if trust.cells == 1 => "the cell".to_owned(),
            true => format!("all {cells} cells"),
            false => format!("{cells} of {} cells", trust.cells),
        };
        parts.push(format!("{count} {}", served(*verdict)));
    }
    if trust.cells > 0 {
        let widest = trust.widest.filter(|widest| *widest > trust.goal);
        let widest =
            widest.map_or_else(String::new, |w| format!(" (widest {})", format_percent(w)));
        parts.push(format!(
            "{} of {} within {}{widest}",
            trust.precise,
            trust.cells,
            format_percent(trust.goal)
        ));
    }
    if trust.unmeasured > 0 {
        parts.push(format!(
            "{} without a trial",
            counted(trust.unmeasured, "cell")
        ));
    }
    if trust.faulty > 0 {
        parts.push(format!(
            "{} with failed trials or wrong data",
            counted(trust.faulty, "cell")
        ));
    }
    parts.push(match trust.disturbed {
        0 => "no disturbance".to_owned(),
        n => format!("{} disturbed", counted(n, "cell")),
    });
    parts.extend(trust.is_virtual.map(|is| match is {
        true => "virtual machine".to_owned(),
        false => "physical machine".to_owned(),
    }));
    let reason = trust
        .reason
        .map_or_else(String::new, |reason| format!(": {}", in_words(reason)));
    format!(
        "Trust: {}{reason}. {}.",
        trust.level.name(),
        capitalised(&parts.join("; "))
    )
}

/// Why numbers are not fully reliable.
fn in_words(reason: Reason) -> &'static str {
    match reason {
        Reason::NoTrials => "nothing was measured",
        Reason::Faulty => "trials failed, or wrong data was read back",
        Reason::NotAsAsked => "most cells were not served by what they ask for",
        Reason::DisturbedAndImprecise => {
            "do not trust these numbers, other programs used the disk or the CPUs during most cells"
        }
        Reason::NothingPrecise => "most intervals are wider than their medians",
        Reason::SomeNotAsAsked => "some cells were not served by what they ask for",
        Reason::SomeDisturbed => "other programs used the disk or the CPUs during some cells",
        Reason::Unfinished => "a run did not finish",
        Reason::Imprecise => "cells missed the precision goal",
    }
}

fn kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Scratch => "scratch file",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::CharDevice => "character device",
        TargetKind::Imported => "imported results",
        TargetKind::Model => "model",
    }
}

fn served(verdict: ServedBy) -> &'static str {
    match verdict {
        ServedBy::Device => "served by the device",
        ServedBy::PageCache => "served by the page cache",
        ServedBy::Mixed => "served in part by the page cache",
        ServedBy::Hole => "read from holes",
        ServedBy::NotStorage => "not served by storage",
        ServedBy::Model => "served by a model",
        ServedBy::Unknown => "of unknown source",
    }
}
