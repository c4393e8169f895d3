//! The first screen of runs: the answer, a table, the most important findings, and where to find the rest, in at
//! most [`SCREEN_LINES`] lines.

use std::path::PathBuf;

use iolab_analysis::analysis::{DoubtKind, MeasuredTarget};
use iolab_analysis::trust::TrustLevel;
use iolab_figure::labels::capital;
use iolab_record::TargetKind;
use iolab_workload::escape_control::{escape_control, shell_words};
use iolab_workload::units::format_bytes;

use super::main_numbers::{LEFT_OUT, Table};
use super::{Overview, description};
use crate::chart::Style;
use crate::layout::{self, SCREEN_LINES, paragraph};
use crate::notation::on_screen;
use crate::{compare, doubt, table};

/// Lines that are reserved for findings before rows of the table take them.
const FINDINGS_LINES: usize = 5;
/// Lines in which a finding says both directions of an effect.
const CLAUSES_LINES: usize = 3;
/// Lines in which it says the greater one.
const SIZE_LINES: usize = 2;
/// Most targets with a column of their own.
const TARGETS_MAX: usize = 3;

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
            let lines = text.lines().map(|line| on_screen(line) + "\n");
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
        let again = match doubt::is_by_others(trust) {
            true => self.again(),
            false => String::new(),
        };
        (trust.level == TrustLevel::Poor).then(|| doubt::sentence(trust) + &again)
    }

    /// Doubts about the only run's numbers, for a table without a column for them.
    fn doubts(&self) -> impl Iterator<Item = String> {
        let inputs = self.inputs.iter();
        let conclusions = inputs.flat_map(|input| &input.interpretation.conclusions);
        let doubts = conclusions.filter(|conclusion| !conclusion.doubts.is_empty());
        doubts.map(|conclusion| capital(&conclusion.doubts()) + ".")
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
                notes.extend(doubt::precision(trust));
            }
            _ => {}
        }
        // A table of accesses has no line above it that says the doubts of a run.
        let conclusions = match self.inputs.as_slice() {
            [only] if self.shows() != Table::Accesses => only.interpretation.conclusions.as_slice(),
            _ => &[],
        };
        let mut said = conclusions.iter().flat_map(|line| &line.doubts);
        let is_said = trust.finding.is_none() && said.any(|(what, _)| Some(*what) == trust.doubt);
        if trust.level == TrustLevel::Limited && !is_said {
            notes.push(doubt::sentence(trust));
        }
        match self.shows() {
            Table::Accesses => notes.extend(self.notes_on_numbers()),
            _ => notes.extend(self.source()),
        }
        if let ([only], Table::Cells) = (self.inputs.as_slice(), self.shows()) {
            notes.extend(table::of_groups(only.run.analysis()));
        }
        notes.extend(self.capped_writes());
        notes
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

    /// The table in at most this many lines.
    fn table(&self, lines: usize, width: u16) -> String {
        let first = self.inputs.first();
        let mut columns = match (self.shows(), first) {
            (Table::Accesses, _) => self.accesses(TARGETS_MAX),
            (Table::Peers, Some(only)) => compare::peer_columns(&only.interpretation.peers),
            (Table::Cells, Some(only)) => {
                table::first_columns(only.run.analysis(), self.is_precise())
            }
            (Table::Curves, _) | (_, None) => self.curves(),
        };
        if matches!(self.shows(), Table::Accesses | Table::Curves) {
            let left_out = columns.iter_mut();
            let left_out = left_out.filter(|column| LEFT_OUT.iter().any(|name| column.is(name)));
            left_out.for_each(|column| column.heading.clear());
        }
        layout::first_rows(columns, lines, width)
    }

    /// The most important findings in this number of lines: whole, or their first clauses where the next one would be left out.
    fn findings(&self, mut left: usize, width: u16) -> String {
        let blocks = (1..).zip(&self.digest.headlines).map(|(number, headline)| {
            let sentence = format!("{}{}", self.about(headline), headline.text);
            let sentence = escape_control(&sentence).into_owned();
            move |lines| layout::cut(&sentence, &format!("{number}. "), lines, width)
        });
        let lines = |block: &dyn Fn(usize) -> String| block(usize::MAX).lines().count();
        let mut blocks = blocks.peekable();
        let mut text = String::new();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().map_or(0, |next| lines(next));
            let room = left.saturating_sub(next.min(SIZE_LINES));
            let room = room.max(CLAUSES_LINES.min(left));
            // The weightiest finding always appears, as far as it fits.
            if room < SIZE_LINES.min(lines(&block)) && !text.is_empty() {
                break;
            }
            let block = block(room.max(1));
            left = left.saturating_sub(block.lines().count());
            text += &block;
        }
        text
    }
}
