//! Cases, each with its outcome, as snapshots keep them. The tests of several crates include this file.

use std::collections::{HashMap, HashSet};

/// Longest line of a case with its outcome, in characters.
const WIDTH: usize = 138;

/// Between a case and its outcome.
pub(crate) const ARROW: &str = " -> ";

/// Shortest outcome for which a later case refers to the first one that has it, in characters.
const LONG: usize = 60;

/// Cases, each with its outcome.
#[derive(Default)]
pub(crate) struct Cases {
    pub(crate) text: String,
    asides: HashSet<String>,
    outcomes: HashMap<String, String>,
}

impl Cases {
    /// Adds a case. What is indented in the outcome, such as a remedy, is written at its first case, by its first words.
    pub(crate) fn add(&mut self, tried: &str, outcome: &str) {
        let before = self.outcomes.get(outcome);
        let same = before.map(|first| format!("as {}", first.trim_start_matches("$ ")));
        let same = same.filter(|_| outcome.chars().count() > LONG);
        let mut lines = vec![tried.to_owned()];
        let mut between = ARROW;
        for part in same.as_deref().unwrap_or(outcome).lines() {
            let is_aside = part.starts_with(' ');
            if part.trim().is_empty() || is_aside && !self.asides.insert(part.to_owned()) {
                continue;
            }
            let last = lines.last_mut().expect("the case");
            let room = WIDTH.saturating_sub(last.chars().count() + between.len());
            let words = part.trim();
            if words.chars().count() <= room {
                *last += &format!("{between}{words}");
            } else if is_aside && words.chars().count() > WIDTH - 5 {
                let first: String = words.chars().take(WIDTH - 5).collect();
                lines.push(format!("  {first}..."));
            } else {
                lines.push(format!("  {words}"));
            }
            between = "; ";
        }
        self.text += &format!("{}\n", lines.join("\n"));
        let first = self.outcomes.entry(outcome.to_owned());
        first.or_insert_with(|| tried.to_owned());
    }
}
