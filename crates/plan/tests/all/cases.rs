//! Cases, each with its outcome, as snapshots keep them. The tests of several crates include this file.

use std::collections::HashSet;

/// Longest line of a case with its outcome, in characters.
const WIDTH: usize = 120;

/// Between a case and its outcome.
pub(crate) const ARROW: &str = " -> ";

/// Cases, each with its outcome.
#[derive(Default)]
pub(crate) struct Cases {
    pub(crate) text: String,
    seen: HashSet<String>,
}

impl Cases {
    /// Adds a case. What is indented in the outcome, such as a remedy, is written at its first case, by its first words.
    pub(crate) fn add(&mut self, tried: &str, outcome: &str) {
        let mut lines = vec![tried.to_owned()];
        let mut between = ARROW;
        for part in outcome.lines().map(str::trim_end) {
            let is_aside = part.starts_with(' ');
            if part.is_empty() || is_aside && !self.seen.insert(part.to_owned()) {
                continue;
            }
            let last = lines.last_mut().expect("the case");
            let length = last.chars().count() + part.chars().count();
            if is_aside && part.chars().count() > WIDTH {
                let words: String = part.chars().take(WIDTH).collect();
                lines.push(format!("  {words}..."));
            } else if is_aside || length > WIDTH || last.starts_with("    ") {
                lines.push(format!("  {part}"));
            } else {
                *last += &format!("{between}{part}");
            }
            between = "; ";
        }
        self.text += &lines.join("\n");
        self.text += "\n";
    }
}
