//! Several runs on one screen: what was measured and how reliable it is, the main numbers, a small curve of each experiment, and
//! the most important findings.

pub(crate) mod main_numbers;

use std::collections::BTreeSet;

use crate::findings::digest::{Digest, Headline, Told};
use iolab_analysis::analysis::Analysis;
use iolab_analysis::sparkline::Sparkline;
use iolab_record::environment::KEYS;
use iolab_record::{RunRecord, TargetKind};
use iolab_workload::Result;
use iolab_workload::quantity::{counted, format_bytes};
use iolab_workload::units::rough_duration;

use crate::chart::Style;
use crate::input::{Input, experiments};
use crate::layout::paragraph;
use crate::sparkline_panels;
use crate::trust;
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
/// Most experiments, or targets, named in a statement; for more it gives their number.
const NAMED_MAX: usize = 3;

/// Runs, and what a page about them begins with.
#[derive(Debug)]
pub struct Overview<'a> {
    pub(crate) inputs: Vec<&'a Input>,
    pub(crate) digest: Digest<'a>,
    /// The sparklines of each experiment, those of several targets on the same axes, with the number of the run whose section shows
    /// them and a name.
    pub(crate) overlaid_outlines: Vec<(usize, String, Sparkline)>,
    /// The targets of all that is drawn; the place of one among them is that of its colour.
    pub(crate) targets: Vec<String>,
}

impl<'a> Overview<'a> {
    /// Of runs in the order of time.
    pub fn new(inputs: impl IntoIterator<Item = &'a Input>) -> Self {
        let inputs: Vec<&Input> = inputs.into_iter().collect();
        let told = inputs.iter().map(|input| Told {
            run: &input.run,
            peers: &input.interpretation.peers,
        });
        let digest = Digest::of(&told.collect::<Vec<_>>());
        let overlaid_outlines = overlaid_outlines(&inputs);
        let of_outlines = overlaid_outlines
            .iter()
            .flat_map(|(.., outline)| outline.targets());
        let of_glance = digest.glance.rows.iter().map(|row| row.target);
        let mut targets: Vec<String> = Vec::new();
        for target in of_outlines.chain(of_glance) {
            if !targets.iter().any(|known| known == target) {
                targets.push(target.to_owned());
            }
        }
        Self {
            inputs,
            digest,
            overlaid_outlines,
            targets,
        }
    }

    /// The results of the runs, in lines to copy: those of a single run, else one per target.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self.inputs.as_slice() {
            [only] => {
                let lines = only.interpretation.conclusions.iter();
                lines
                    .map(|line| escape_control(&line.text).into_owned())
                    .collect()
            }
            _ => self.answers(),
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
        for text in [self.subject(), trust::sentence(&self.digest.trust)] {
            head.push_str(&paragraph(&text, "", style.width));
        }
        head.push('\n');
        head.push_str(&self.glance(style.width));
        let outlines = self.outlines();
        let caveats = self.caveats(CAVEAT_LINES, style.width);
        let left = |head: &str| {
            let used = head.lines().count() + caveats.lines().count() + LINES_BELOW;
            LINES_MAX.saturating_sub(used)
        };
        // Findings come before curves, which the page has as well.
        let all = self.findings(usize::MAX, style.width);
        let drawn = match outlines.is_empty() {
            true => head.clone(),
            false => format!("{head}\n{}", sparkline_panels::text(&outlines, style)),
        };
        let lines = |text: &str| text.lines().count();
        let drawn_lines = lines(&drawn) + lines(&all) + lines(&caveats) + LINES_BELOW;
        let head = match drawn_lines <= LINES_MAX {
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
        if self.digest.cells > FEW_CELLS {
            return self.findings(usize::MAX, width) + &self.caveats(CAVEAT_LINES, width);
        }
        let left = RUN_LINES_MAX.saturating_sub(used);
        // Includes the empty line before the caveats.
        let least = FINDINGS_LINES_MIN + 1;
        let caveats = self.caveats(left.saturating_sub(least).clamp(1, CAVEAT_LINES), width);
        let lines = left.saturating_sub(caveats.lines().count());
        self.findings(lines.max(FINDINGS_LINES_MIN), width) + &caveats
    }

    /// Whether a single run with few cells, whose text has `used` lines so far, ends within a screen.
    pub fn fits(&self, used: usize, width: u16) -> bool {
        let findings = self.findings_text(used, width);
        self.digest.cells > FEW_CELLS || used + findings.lines().count() <= RUN_LINES_MAX
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
        let mut targets: Vec<String> = Vec::new();
        for name in records().flat_map(RunRecord::target_names) {
            let name = escape_control(&name).into_owned();
            if !targets.contains(&name) {
                targets.push(name);
            }
        }
        let mut text = format!(
            "Measured: {}, {}, {} in {}, on {}",
            experiments(self.inputs.iter().copied()),
            counted(self.digest.cells, "cell"),
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

    /// The main numbers as a PNG picture of 1200 by 630 pixels; `None` for none.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be drawn.
    pub fn picture(&self) -> Result<Option<Vec<u8>>> {
        match self.picture_parts() {
            None => Ok(None),
            Some((numbers, words)) => preview_image::png(&numbers, &words.borrowed()).map(Some),
        }
    }

    /// The same as SVG for a page, with ids that begin with `id`.
    pub(crate) fn picture_svg(&self, id: &str) -> Option<String> {
        let (numbers, words) = self.picture_parts()?;
        Some(preview_image::svg(&numbers, &words.borrowed(), id))
    }

    /// The name of a run: its experiment, with its target where another run is of the same experiment.
    pub(crate) fn name_among_runs(&self, analysis: &Analysis) -> String {
        let is_alike = |other: &&&Input| other.run.analysis().experiment == analysis.experiment;
        match self.inputs.iter().filter(is_alike).count() {
            1 => analysis.experiment.clone(),
            _ => format!("{} on {}", analysis.experiment, analysis.target),
        }
    }

    /// Name and sparkline of each run that has one.
    fn outlines(&self) -> Vec<(String, Sparkline)> {
        let named = self.inputs.iter().filter_map(|input| {
            let analysis = input.run.analysis();
            Some((self.name_among_runs(analysis), outline(analysis)?))
        });
        named.filter(|(_, outline)| is_curve(outline)).collect()
    }

    /// As many headlines as fit into this number of lines, the most important first.
    fn findings(&self, lines: usize, width: u16) -> String {
        let heading = "\nWhat matters\n";
        let mut text = heading.to_owned();
        let mut left = lines.saturating_sub(3);
        let mut number = 1;
        for headline in &self.digest.headlines {
            let block = |text: &str| {
                let sentence = format!("{}{text}", self.about(headline));
                paragraph(&escape_control(&sentence), &format!("{number}. "), width)
            };
            let short = headline.short.as_deref();
            let blocks = [Some(headline.text.as_str()), short];
            let blocks: Vec<String> = blocks.into_iter().flatten().map(block).collect();
            let fits = |block: &&String| block.lines().count() <= left;
            // The weightiest one stands there in any case.
            let shortest = blocks.last().filter(|_| number == 1);
            let Some(block) = blocks.iter().find(fits).or(shortest) else {
                break;
            };
            left = left.saturating_sub(block.lines().count());
            number += 1;
            text.push_str(block);
        }
        match self.digest.headlines.len() + 1 - number {
            0 => {}
            n => text.push_str(&paragraph(&format!("and {n} more: --full"), "   ", width)),
        }
        if text == heading { String::new() } else { text }
    }

    /// The runs that a headline is about, where there are several and its text does not name them.
    pub(crate) fn about(&self, headline: &Headline) -> String {
        if self.inputs.len() < 2 || headline.names_runs {
            return String::new();
        }
        let names_target = self.needs_target(headline);
        self.names_of(headline, "experiments", |run| match names_target {
            true => format!("{} on {}", run.experiment, run.target),
            false => run.experiment.clone(),
        })
    }

    /// The targets that a headline is about, where the runs have several and its text does not name them.
    pub(crate) fn place(&self, headline: &Headline) -> String {
        match self.needs_target(headline) {
            true => self.names_of(headline, "targets", |run| run.target.clone()),
            false => String::new(),
        }
    }

    /// Whether a headline has to be said with its target.
    fn needs_target(&self, headline: &Headline) -> bool {
        let targets = self.inputs.iter().map(|input| &input.run.analysis().target);
        targets.collect::<BTreeSet<_>>().len() > 1 && !headline.names_targets
    }

    /// `NAME, NAME: ` of the runs of a headline, each once; `5 KIND: ` of many.
    fn names_of(
        &self,
        headline: &Headline,
        kind: &str,
        name: impl Fn(&Analysis) -> String,
    ) -> String {
        let mut names: Vec<String> = Vec::new();
        for input in headline.runs.iter().filter_map(|run| self.inputs.get(*run)) {
            let name = name(input.run.analysis());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.len() {
            0 => String::new(),
            n if n > NAMED_MAX => format!("{n} {kind}: "),
            _ => format!("{}: ", names.join(", ")),
        }
    }

    /// The limits of the numbers after an empty line; empty without any. Whole caveats, in at most this many lines.
    pub fn caveats(&self, lines: usize, width: u16) -> String {
        self.caveats_or(lines, width, " (--full)")
    }

    /// The same; `option` says how to get those for which there is no room.
    pub(crate) fn caveats_or(&self, lines: usize, width: u16, option: &str) -> String {
        let texts = self.caveat_words();
        if texts.is_empty() {
            return String::new();
        }
        // Whole caveats only.
        let block = |shown: usize| {
            let more = match texts.len() - shown {
                0 => String::new(),
                n => format!("; and {n} more{option}"),
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

/// See [`Overview::overlaid_outlines`].
fn overlaid_outlines(inputs: &[&Input]) -> Vec<(usize, String, Sparkline)> {
    let mut groups: Vec<(usize, &Input, Vec<Sparkline>)> = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let alike = |(_, first, _): &&mut (usize, &Input, _)| first.asks_the_same(input);
        let own = outline(input.run.analysis());
        match groups.iter_mut().find(alike) {
            Some((_, _, outlines)) => outlines.extend(own),
            None => groups.push((number, input, own.into_iter().collect())),
        }
    }
    let named = groups.into_iter().flat_map(|(number, input, outlines)| {
        let name = input.run.analysis().experiment.clone();
        match Sparkline::overlaid(outlines.clone()) {
            Some(all) => vec![(number, name, all)],
            // They lie along different factors.
            None => {
                let each = outlines.into_iter();
                each.map(|one| (number, name.clone(), one)).collect()
            }
        }
    });
    named.filter(|(_, _, outline)| is_curve(outline)).collect()
}

/// The sparkline of a run, for terminals and pages. Runs of `iolab why` have no curve.
fn outline(analysis: &Analysis) -> Option<Sparkline> {
    match analysis.inquiry {
        Some(_) => None,
        None => Sparkline::of(analysis),
    }
}

/// Whether an outline has enough levels to be drawn.
fn is_curve(outline: &Sparkline) -> bool {
    outline.levels.len() > 2 && outline.curves.iter().any(|curve| curve.points.len() > 2)
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
