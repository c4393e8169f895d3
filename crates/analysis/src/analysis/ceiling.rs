//! The share of a device's ceiling that a cell reaches.

use iolab_workload::quantity::{format_percent, significant};

use super::{CellAnalysis, Flag};
use iolab_record::ServedBy;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::peak_source::PeakSource;
use iolab_record::peaks::{Peaks, above_zero};

/// A measured ceiling may be exceeded by this factor by chance.
const MEASURED_SLACK: f64 = 1.05;

/// A cell relative to the ceiling that limits it first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// The ceiling, in MB/s or requests per second.
    pub ceiling: f64,
    /// Whether the ceiling is in requests per second.
    pub is_iops: bool,
    /// The source of the ceiling.
    pub source: PeakSource,
    /// Median of the cell over the ceiling.
    pub share: f64,
    /// A known reason for a share above 1; `None` otherwise.
    pub cause: Option<&'static str>,
}

impl Efficiency {
    /// Whether the cell exceeds its ceiling without a known reason.
    pub fn exceeds(&self) -> bool {
        self.share > 1.0 && self.cause.is_none()
    }

    /// `510 MB/s stated`.
    pub fn ceiling_text(&self) -> String {
        let unit = if self.is_iops { "IOPS" } else { "MB/s" };
        format!("{} {unit} {}", significant(self.ceiling), self.source)
    }

    /// `87 %`; above 100 % with the reason.
    pub fn share_text(&self) -> String {
        let share = format_percent(self.share);
        match self.cause {
            _ if self.share <= 1.0 => share,
            Some(cause) => format!("{share} ({cause})"),
            None => format!("{share} ({})", Flag::ExceedsCeiling),
        }
    }
}

/// All ceilings of a target.
pub(super) struct Ceilings {
    by_source: [(PeakSource, Peaks); 3],
    is_virtual: bool,
}

impl Ceilings {
    /// The ceilings of the target with this number, from the environment of a run file.
    pub(super) fn of(environment: &Environment, number: usize) -> Self {
        let link = above_zero(environment.get_of(number, &KEYS.device_link_mb_s));
        let of_link = Peaks {
            read_mb_s: link,
            write_mb_s: link,
            ..Peaks::default()
        };
        let kept = |source| (source, Peaks::kept_of(environment, number, source));
        Self {
            by_source: [
                kept(PeakSource::Stated),
                kept(PeakSource::Measured),
                (PeakSource::Link, of_link),
            ],
            is_virtual: environment.get(&KEYS.machine_is_virtual) == Some(true),
        }
    }

    /// The efficiency of a cell that only reads or only writes: of the first source with a ceiling for it, the ceiling that
    /// limits it first.
    pub(super) fn efficiency(&self, cell: &CellAnalysis) -> Option<Efficiency> {
        let (mb_s, iops) = (cell.throughput?.median, cell.iops?.median);
        self.by_source.iter().find_map(|(source, peaks)| {
            let (most_mb_s, most_iops) = match cell.cell.trial().read_percent {
                100 => (peaks.read_mb_s, peaks.read_iops),
                0 => (peaks.write_mb_s, peaks.write_iops),
                _ => return None,
            };
            let of = |value: f64, ceiling: Option<f64>, is_iops| {
                let ceiling = ceiling?;
                let share = value / ceiling;
                Some(Efficiency {
                    ceiling,
                    is_iops,
                    source: *source,
                    share,
                    cause: self.cause(cell, share, *source),
                })
            };
            [of(mb_s, most_mb_s, false), of(iops, most_iops, true)]
                .into_iter()
                .flatten()
                .max_by(|a, b| a.share.total_cmp(&b.share))
        })
    }

    fn cause(&self, cell: &CellAnalysis, share: f64, source: PeakSource) -> Option<&'static str> {
        if share <= 1.0 {
            return None;
        }
        let any = |verdict| cell.served.as_ref().is_some_and(|s| s.any(verdict));
        if any(ServedBy::NotStorage) {
            Some("not storage")
        } else if any(ServedBy::Hole) {
            Some("holes")
        } else if any(ServedBy::PageCache) || any(ServedBy::Mixed) {
            Some("page cache")
        } else if any(ServedBy::Unknown) {
            Some("may not be the device")
        } else if source == PeakSource::Measured && share <= MEASURED_SLACK {
            Some("within the probe's noise")
        } else if self.is_virtual {
            Some("host cache suspected")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_above_one_is_never_bare() {
        let of = |share, cause| Efficiency {
            ceiling: 510.0,
            is_iops: false,
            source: PeakSource::Stated,
            share,
            cause,
        };
        assert_eq!(of(0.87, None).share_text(), "87 %");
        assert_eq!(
            of(1.39, Some("page cache")).share_text(),
            "139 % (page cache)"
        );
        assert_eq!(of(1.39, None).share_text(), "139 % (exceeds ceiling)");
        assert!(of(1.39, None).exceeds() && !of(1.0, None).exceeds());
        assert_eq!(of(0.5, None).ceiling_text(), "510 MB/s stated");
    }
}
