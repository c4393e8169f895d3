//! Texts with the same outcome, in one line of a snapshot. The tests of several crates include this file.

/// Texts after their outcome.
#[derive(Default)]
pub(crate) struct Grouped(Vec<(String, Vec<String>)>);

impl Grouped {
    pub(crate) fn add(&mut self, outcome: String, text: String) {
        match self.0.iter_mut().find(|(own, _)| *own == outcome) {
            Some((_, texts)) => texts.push(text),
            None => self.0.push((outcome, vec![text])),
        }
    }

    /// Adds a refusal by its reason, in which `_` stands for quoted parts of the text.
    pub(crate) fn add_refused(&mut self, message: &str, text: &str) {
        let whole = message.replace(&format!("'{text}'"), "_");
        let parts = whole.split('\'').collect::<Vec<_>>();
        let mut reason = String::new();
        for (place, part) in parts.iter().enumerate() {
            let is_quoted = place % 2 == 1 && place + 1 < parts.len();
            reason += &match is_quoted {
                true if !part.is_empty() && text.contains(part) => "_".to_owned(),
                true => format!("'{part}'"),
                false if place % 2 == 1 => format!("'{part}"),
                false => (*part).to_owned(),
            };
        }
        self.add(format!("! {reason}"), format!("{text:?}"));
    }

    pub(crate) fn told(&self, of: &str) -> String {
        let told = self.0.iter();
        let told = told.map(|(outcome, texts)| wrapped(&format!("{of}{outcome}:"), texts));
        told.collect()
    }
}

/// A list after its head, in lines of at most 138 characters.
pub(crate) fn wrapped(head: &str, parts: &[String]) -> String {
    let mut lines = vec![head.to_owned()];
    for part in parts {
        let last = lines.last_mut().expect("the head");
        match last.chars().count() + part.chars().count() < 136 {
            true => *last += &format!(" {part},"),
            false => lines.push(format!("    {part},")),
        }
    }
    let all = lines.join("\n");
    format!("{}\n", all.trim_end_matches(','))
}
