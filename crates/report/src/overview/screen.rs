//! The first screen of runs: the answer, a table, the most important findings, and where to find the rest, in at
//! most [`SCREEN_LINES`] lines.

use std::path::PathBuf;

use iolab_analysis::analysis::{DoubtKind, MeasuredTarget};
use iolab_analysis::headline_numbers::{AccessOperation, AccessOrder, HeadlineCell};
use iolab_analysis::sparkline::{Sparkline, SparklinePoint};
use iolab_analysis::trust::TrustLevel;
use iolab_figure::result_names;
use iolab_record::TargetKind;
use iolab_workload::escape_control::escape_control;
use iolab_workload::escape_control::shell_words;
use iolab_workload::quantity::{exact_size, format_bytes, format_percent};

use super::main_numbers::number;
use super::{Overview, description};
use crate::chart::Style;
use crate::layout::{self, Column, SCREEN_LINES, SCREEN_ROWS, capitalised, none, paragraph};
use crate::notation::on_page;
use crate::trust::LEAST_SHOWN;
use crate::{compare, table, trust};

/// Lines that are reserved for findings before rows of the table take them.
const FINDINGS_LINES: usize = 5;
/// Mark of a number whose trials were disturbed.
const DISTURBED: &str = " !";
/// Most targets with a column of their own.
const TARGETS_MAX: usize = 3;

/// Kind of rows in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    /// Kinds of access.
    Accesses,
    /// Cells of iolab and of another tool.
    Peers,
    Cells,
    Curves,
}

impl Overview<'_> {
    /// The first screen, of which the command uses `below` lines.
    pub fn screen(&self, below: usize, style: &Style) -> String {
        let width = style.width;
        let block = |text: &str| paragraph(&escape_control(text), "", width);
        let head: String = self.head().iter().map(|text| block(text)).collect();
        let mut foot = String::new();
        for note in self.notes() {
            foot += &block(&note);
        }
        let lines = |text: &str| text.lines().count();
        // An empty line above the table, and one above the findings.
        let taken = lines(&head) + lines(&foot) + below + 2;
        let left = SCREEN_LINES.saturating_sub(taken);
        let all = self.findings(usize::MAX, width);
        let findings = lines(&all).min(FINDINGS_LINES);
        let table = self.table(left.saturating_sub(findings), width);
        let findings = self.findings(left.saturating_sub(lines(&table)), width);
        let gap = if findings.is_empty() { "" } else { "\n" };
        let [head, foot, findings] = [head, foot, findings].map(|text| {
            let lines = text.lines().map(|line| written(line) + "\n");
            lines.collect::<String>()
        });
        // Levels in a table stay as they are typed.
        format!("{head}\n{table}{foot}{gap}{findings}")
    }

    /// First lines of the screen: the result of a run, or the target of a glance. A verdict precedes them if the
    /// numbers are of no use.
    fn head(&self) -> Vec<String> {
        let subject = match (self.inputs.as_slice(), self.shows()) {
            ([only], Table::Curves) => {
                let run = only.run.analysis();
                let what = format!("{}: {}   ", run.experiment, run.response_name());
                let places = self.places();
                let places = places.iter().map(|place| format!("{what}{place}"));
                places.chain(self.doubts()).collect()
            }
            ([_], Table::Cells | Table::Peers) => self.lines(),
            _ => self.places(),
        };
        self.verdict_on_useless()
            .map_or(subject, |verdict| vec![verdict])
    }

    /// The verdict if the numbers are of no use, with advice.
    pub(crate) fn verdict_on_useless(&self) -> Option<String> {
        let trust = &self.digest.trust;
        let again = match trust::is_by_others(trust) {
            true => self.again(),
            false => String::new(),
        };
        (trust.level == TrustLevel::Poor).then(|| trust::sentence(trust) + &again)
    }

    /// Doubts about the only run's numbers, for a table without a column for them.
    fn doubts(&self) -> impl Iterator<Item = String> {
        let inputs = self.inputs.iter();
        let conclusions = inputs.flat_map(|input| &input.interpretation.conclusions);
        let doubts = conclusions.filter(|conclusion| !conclusion.doubts.is_empty());
        doubts.map(|conclusion| capitalised(&conclusion.doubts) + ".")
    }

    /// `/mnt/disk   Samsung SSD 990 (nvme0n1), 2.00 TB, ext4`: a line for each target, or one with the names of
    /// all.
    fn places(&self) -> Vec<String> {
        let mut targets: Vec<&MeasuredTarget> = Vec::new();
        for target in self
            .inputs
            .iter()
            .flat_map(|input| &input.run.analysis().targets)
        {
            if !targets.iter().any(|known| known.name == target.name) {
                targets.push(target);
            }
        }
        let is_model = |one: &&MeasuredTarget| one.kind == TargetKind::Model;
        match targets.len() {
            2.. if targets.iter().all(is_model) => vec![description(targets[0])],
            0..=TARGETS_MAX => {
                let each = targets.into_iter();
                each.map(|one| format!("{}   {}", one.name, description(one)))
                    .collect()
            }
            n => vec![format!("{n} targets")],
        }
    }

    /// Advice to repeat the measurement. Only a glance gets a command: without its settings, another run could write more.
    fn again(&self) -> String {
        let only = match self.inputs.as_slice() {
            [only] if only.run.analysis().experiment == "glance" => only,
            _ => return " Repeat when idle.".to_owned(),
        };
        let targets: Vec<PathBuf> = only.run.record().targets().map(PathBuf::from).collect();
        format!(" Repeat when idle: iolab study {}", shell_words(&targets))
    }

    /// Notes below the table: the precision of all numbers, and their limits.
    fn notes(&self) -> Vec<String> {
        let trust = &self.digest.trust;
        let mut notes = Vec::new();
        match trust.level {
            TrustLevel::Good | TrustLevel::Limited if self.is_precise() => {
                notes.extend(trust::precision(trust));
            }
            _ => {}
        }
        if trust.level == TrustLevel::Limited {
            notes.push(trust::sentence(trust));
        }
        let mut rows = self.digest.glance.rows.iter();
        if self.shows() == Table::Accesses && rows.any(|row| row.cell.is_disturbed()) {
            notes.push(format!(
                "{}: disturbed; the flags of 'iolab table' say by what",
                DISTURBED.trim()
            ));
        }
        if let Some(origin) = self.common_origin() {
            notes.push(format!("Source of all numbers: {origin}"));
        }
        notes.extend(self.capped_writes());
        notes
    }

    /// Origin of all numbers of the glance, unless it is the target.
    fn common_origin(&self) -> Option<String> {
        let mut origins = self.digest.glance.rows.iter().map(origin);
        let first = origins.next()??;
        origins
            .all(|other| other.as_ref() == Some(&first))
            .then_some(first)
    }

    /// Whether all numbers reached their goal, so that one line states their precision.
    fn is_precise(&self) -> bool {
        let runs = || self.inputs.iter().map(|input| input.run.analysis());
        let all = runs().all(|run| {
            let shown = run.cells.iter().filter(|cell| cell.response.is_some());
            let mut wide = shown.map(|cell| cell.precision.is_none_or(|p| p > run.precision_goal));
            !wide.any(|wide| wide)
        });
        all && runs().all(|run| run.seeks_precision)
    }

    /// Note on plain writes that end within a cache.
    fn capped_writes(&self) -> Option<String> {
        let rows = self.digest.glance.rows.iter();
        let capped = rows.filter(|row| row.cell.flags.contains(&DoubtKind::CappedWrites));
        let most = capped
            .filter_map(|row| row.cell.cell.trial().limit.bytes)
            .max()?;
        Some(format!(
            "Plain writes: at most {} a trial, which a cache can hold; for lasting rates add --set writes=none",
            format_bytes(most as f64)
        ))
    }

    /// Kind of table: accesses, if these are all that was measured; cells, if these are few.
    fn shows(&self) -> Table {
        let rows = self.digest.glance.rows.len();
        match self.inputs.as_slice() {
            [only] if !only.interpretation.peers.is_empty() => Table::Peers,
            _ if rows > 1 && rows == self.digest.cells => Table::Accesses,
            [only] if only.run.analysis().cells.len() <= SCREEN_ROWS => Table::Cells,
            _ => Table::Curves,
        }
    }

    /// The table in at most this many lines.
    fn table(&self, lines: usize, width: u16) -> String {
        let first = self.inputs.first();
        let columns = match (self.shows(), first) {
            (Table::Accesses, _) => self.accesses(),
            (Table::Peers, Some(only)) => compare::peer_columns(&only.interpretation.peers),
            (Table::Cells, Some(only)) => {
                table::first_columns(only.run.analysis(), self.is_precise())
            }
            (Table::Curves, _) | (_, None) => self.curves(),
        };
        layout::first_rows(columns, lines, width)
    }

    /// A row for each kind of access, with a column for each operation. For several targets, a row for each
    /// operation, and a column for each target.
    fn accesses(&self) -> Vec<Column> {
        let all = &self.digest.glance.rows;
        let mut targets: Vec<&str> = Vec::new();
        for row in all {
            if !targets.contains(&row.target) {
                targets.push(row.target);
            }
        }
        let is_one = targets.len() == 1;
        targets.truncate(TARGETS_MAX);
        let key = |row: &HeadlineCell<'_>| {
            let operation = (!is_one).then_some(row.operation);
            (
                row.order,
                row.cell.cell.trial().bs,
                row.in_flight(),
                operation,
            )
        };
        let mut keys: Vec<_> = Vec::new();
        for row in all {
            if !keys.contains(&key(row)) {
                keys.push(key(row));
            }
        }
        keys.sort_by_key(|(order, size, flight, operation)| {
            (
                *order,
                std::cmp::Reverse(*size),
                std::cmp::Reverse(*flight),
                *operation,
            )
        });
        let name = |order: AccessOrder, size: u64| {
            let order = match order {
                AccessOrder::Sequential => "seq",
                AccessOrder::Random => "random",
            };
            format!("{} {order}", exact_size(size))
        };
        let labels = keys.iter().map(|(order, size, flight, operation)| {
            let flight = format!("QD{flight}");
            match operation {
                None => [name(*order, *size), flight],
                Some(operation) => [
                    format!("{} {flight}", name(*order, *size)),
                    operation.name().to_owned(),
                ],
            }
        });
        let (names, rest): (Vec<String>, Vec<String>) = labels.map(|[a, b]| (a, b)).unzip();
        let mut columns = vec![
            Column::new("", 0, without_repeats(names)).left(),
            Column::new("", 0, rest).left(),
        ];
        let (is_precise, common) = (self.is_precise(), self.common_origin());
        let value = |row: Option<&HeadlineCell<'_>>| {
            let own = |row| value(row, is_precise, origin(row).filter(|_| common.is_none()));
            row.and_then(own).unwrap_or_else(none)
        };
        if is_one {
            let operations = AccessOperation::ALL.into_iter();
            let measured = operations.filter(|one| all.iter().any(|row| row.operation == *one));
            columns.extend(measured.map(|operation| {
                let of = |wanted| {
                    all.iter()
                        .find(|row| key(row) == wanted && row.operation == operation)
                };
                Column::new(
                    operation.name(),
                    0,
                    keys.iter().map(|wanted| value(of(*wanted))),
                )
            }));
        } else {
            columns.extend(targets.iter().map(|target| {
                let of = |wanted| {
                    all.iter()
                        .find(|row| key(row) == wanted && row.target == *target)
                };
                let name = target.strip_prefix("model:").unwrap_or(target);
                let values = keys.iter().map(|wanted| value(of(*wanted)));
                Column::new(escape_control(name), 0, values)
            }));
        }
        let units = keys.iter().map(|wanted| {
            let rate = all
                .iter()
                .find(|row| key(row) == *wanted)
                .and_then(HeadlineCell::rate);
            rate.map_or_else(none, |rate| rate.unit.to_owned())
        });
        columns.push(Column::new("", 0, units).left());
        columns
    }

    /// A row for each curve, with its least and its greatest value.
    fn curves(&self) -> Vec<Column> {
        let is_precise = self.is_precise();
        let mut factors: Vec<String> = Vec::new();
        let mut rows: Vec<[String; 6]> = Vec::new();
        for input in &self.inputs {
            let analysis = input.run.analysis();
            let Some(outline) = Sparkline::of(analysis) else {
                continue;
            };
            let has_targets = outline.targets().len() > 1;
            factors.push(outline.factor.clone());
            for curve in &outline.curves {
                let end = |(place, point): &(usize, SparklinePoint)| {
                    let level = outline.levels.get(*place).cloned();
                    let wide = match point.interval.filter(|_| !is_precise) {
                        Some((low, high)) => {
                            let half = (high - low) / 2.0 / point.value;
                            format!(" ±{}", format_percent(half.max(LEAST_SHOWN)))
                        }
                        None => String::new(),
                    };
                    let value = outline.response.format(point.value);
                    (
                        written(&format!("{value}{wide}")),
                        level.unwrap_or_default(),
                    )
                };
                let value = |point: &&(usize, SparklinePoint)| point.1.value;
                let points = || curve.points.iter();
                let least = points().min_by(|a, b| value(a).total_cmp(&value(b)));
                let most = points().max_by(|a, b| value(a).total_cmp(&value(b)));
                let Some((least, most)) = least.zip(most) else {
                    continue;
                };
                let name = match has_targets {
                    true => format!("{} {}", curve.target, curve.name),
                    false => curve.name.clone(),
                };
                let ((least, at_least), (most, at_most)) = (end(least), end(most));
                let experiment = self.name_among_runs(analysis);
                rows.push([experiment, name, least, at_least, most, at_most]);
            }
        }
        factors.dedup();
        let at = match factors.as_slice() {
            [only] => format!("at {only}"),
            _ => "at".to_owned(),
        };
        let column = |heading: &str, place: usize| {
            let values = rows
                .iter()
                .map(|row| escape_control(&row[place]).into_owned());
            Column::new(escape_control(heading), 0, values)
        };
        let mut columns = vec![
            column("", 0).left(),
            column("", 1).left(),
            column("least", 2),
            column(&at, 3).left(),
            column("most", 4),
            column(&at, 5).left(),
        ];
        if rows.iter().all(|row| row[1].is_empty()) {
            columns.remove(1);
        }
        if self.inputs.len() == 1 {
            columns.remove(0);
        }
        columns
    }

    /// The most important findings that fit into this number of lines.
    fn findings(&self, lines: usize, width: u16) -> String {
        let mut text = String::new();
        let mut left = lines;
        for (number, headline) in (1..).zip(&self.digest.headlines) {
            let sentence = format!("{}{}", self.about(headline), headline.text);
            let block = paragraph(&escape_control(&sentence), &format!("{number}. "), width);
            let taken = block.lines().count();
            if taken > left {
                // The weightiest finding always appears, as far as it fits.
                if number == 1 {
                    text = layout::cut(&block, left.max(1), width);
                }
                break;
            }
            left -= taken;
            text += &block;
        }
        text
    }
}

/// The texts; a text that repeats the one above it is empty.
fn without_repeats(texts: Vec<String>) -> Vec<String> {
    let repeats = |place: usize| place > 0 && texts[place - 1] == texts[place];
    let all = texts.iter().enumerate();
    all.map(|(place, text)| match repeats(place) {
        true => String::new(),
        false => text.clone(),
    })
    .collect()
}

/// Origin of a row, unless it is the target.
fn origin(row: &HeadlineCell<'_>) -> Option<String> {
    let served = row.cell.served.as_ref().filter(|_| !row.cell.is_target());
    served.map(result_names::served)
}

/// A rate with its interval, unless one line gives the interval of all, and its origin.
fn value(row: &HeadlineCell<'_>, is_precise: bool, origin: Option<String>) -> Option<String> {
    let rate = row.rate()?;
    let within = match (is_precise, rate.precision) {
        (false, Some(precision)) => format!(" ±{}", format_percent(precision.max(LEAST_SHOWN))),
        (true, _) | (_, None) => String::new(),
    };
    let origin = origin.map_or_else(String::new, |served| format!(" [{served}]"));
    let mark = if row.cell.is_disturbed() {
        DISTURBED
    } else {
        ""
    };
    Some(written(&format!("{}{within}{origin}{mark}", number(&rate))))
}

/// The text in the notation of pages, with spaces that can be copied.
fn written(text: &str) -> String {
    on_page(text).replace(['\u{a0}', '\u{202f}'], " ")
}
