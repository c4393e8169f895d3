//! The ceilings of targets, stated by the user or found by short probes.

use iolab_plan::cells::Plan;
use iolab_record::peak_source::PeakSource;
use iolab_record::peaks::Peaks;
use iolab_runner::peak_probe;
use iolab_workload::{Error, Result};

use super::{OpenedSystem, Site, Workspace};
use iolab_command::output::note;

/// The ceilings of `--peak`.
pub(crate) enum AskedPeaks {
    /// Ceilings that the user states.
    Stated(Peaks),
    /// Ceilings to be found by probes.
    Measured,
}

impl AskedPeaks {
    /// Reads the option of a run that carries these plans out.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an invalid ceiling, or a target that has none or is not probed.
    pub(crate) fn read(text: &str, planned: &[(Site, Plan)]) -> Result<Self> {
        let asked = match text {
            "measure" => Self::Measured,
            stated => Self::Stated(Peaks::parse(stated)?),
        };
        for (site, plan) in planned {
            if site.model.is_none() && plan.experiment().runs_programs() {
                return Err(Error::usage("--peak does not apply to programs").hint("leave it out"));
            }
            let ranks = site.ranks.as_ref().map_or(1, |ranks| ranks.count());
            if ranks > 1 && matches!(asked, Self::Measured) {
                return Err(Error::usage(format!(
                    "--peak measure probes the target with one process, and {ranks} measure"
                ))
                .hint(
                    "state the ceilings of all ranks together: --peak read=3200MB/s,iops=95000",
                ));
            }
            if site.model.is_some() && matches!(asked, Self::Measured) {
                return Err(Error::usage("the ceilings of a model are not measured")
                    .hint("state them: --peak read=200MB/s,iops=100"));
            }
        }
        Ok(asked)
    }
}

impl Workspace {
    /// Uses the ceilings that the user states, or finds them by short probes.
    ///
    /// # Errors
    ///
    /// Errors of the probes.
    pub(super) fn determine_peaks(&mut self, asked: &AskedPeaks, writes: bool) -> Result<()> {
        if let AskedPeaks::Stated(peaks) = asked {
            self.known.extend(peaks.environment(PeakSource::Stated));
            return Ok(());
        }
        let OpenedSystem::Targets(targets) = &self.place else {
            return Ok(());
        };
        for (number, (named, target)) in targets.iter().enumerate() {
            let place = named.display();
            note(format_args!("note: measuring the ceilings of {place}"));
            let peaks = peak_probe::measure(target, &self.clock, self.stop.soon(), writes)?;
            note(format_args!("note: the ceilings are {}", peaks.words()));
            let facts = peaks.environment(PeakSource::Measured);
            match number {
                0 => self.known.extend(facts),
                _ => self.known.put_target(number, facts),
            }
        }
        Ok(())
    }
}
