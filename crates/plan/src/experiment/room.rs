//! I/O sizes that are larger than what there is to touch.

use iolab_spec::Result;
use iolab_spec::units::{format_size, parse_size};

use super::Experiment;

impl Experiment {
    /// Leaves out the I/O sizes above `room` bytes, and says so. With none left the check of the plan says what is wrong.
    ///
    /// # Errors
    /// Of kind usage, as [`Experiment::sweep`].
    pub fn leave_out_sizes_above(&mut self, room: u64) -> Result<Option<String>> {
        let Some(factor) = self.factors.iter().find(|f| f.of.is("bs")) else {
            return Ok(None);
        };
        let setting = factor.of.setting;
        let fits = |level: &String| parse_size(level).is_ok_and(|bytes| bytes <= room);
        let (small, large): (Vec<String>, Vec<String>) =
            factor.levels.iter().cloned().partition(fits);
        if large.is_empty() || small.is_empty() {
            return Ok(None);
        }
        self.sweep(setting, &small)?;
        Ok(Some(format!(
            "{}: left out bs {}, larger than the {} there are",
            self.name,
            large.join(", "),
            format_size(room)
        )))
    }
}
