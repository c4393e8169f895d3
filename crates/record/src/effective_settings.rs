//! Settings in force in a trial, as one text: the column `effective` of exports.

use std::str::FromStr;

use super::{RingFlag, Sample};

impl Sample {
    /// Settings in force that can differ from the requested ones: `fixed_file,fixed_buffers,...; note`. For another tool's
    /// trial its command line comes before the note.
    pub fn effective_text(&self) -> String {
        let effective = &self.effective;
        let flags = [
            (effective.fixed_file, "fixed_file"),
            (effective.fixed_buffers, "fixed_buffers"),
        ];
        let flags = flags.into_iter().filter(|(on, _)| *on);
        let flags = flags.map(|(_, name)| name.to_owned());
        let ring = effective.ring.iter().map(ToString::to_string);
        let flags = flags.chain(ring).collect::<Vec<_>>().join(",");
        let parts = Some(flags).filter(|flags| !flags.is_empty());
        let parts: Vec<String> = parts.into_iter().chain(self.command_and_note()).collect();
        parts.join("; ")
    }

    /// The command line and the note, as far as there are any.
    fn command_and_note(&self) -> Option<String> {
        let command = self.effective.command.as_deref().unwrap_or_default();
        let text = format!("{command} {}", self.effective.note);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The version and the command line of another tool's trial, with what there is to say of it.
    pub fn command(&self) -> Option<String> {
        self.effective.command.as_ref()?;
        self.command_and_note()
    }

    pub(super) fn effective_ring(&self) -> String {
        let flags = self.effective.ring.iter();
        let names: Vec<String> = flags.map(ToString::to_string).collect();
        names.join(",")
    }

    pub(super) fn put_effective_ring(&mut self, text: &str) -> bool {
        let flags = text.split(',').filter(|name| !name.is_empty());
        let flags = flags.map(RingFlag::from_str).collect::<Result<Vec<_>, _>>();
        flags.map(|flags| self.effective.ring = flags).is_ok()
    }
}
