//! The share of a device's ceiling that a cell reaches.

use super::CellAnalysis;
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
    pub cause: Option<ExcessCause>,
}

/// Reason why a cell exceeds its ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExcessCause {
    /// Trials were not served by storage.
    NotStorage,
    /// Trials read holes.
    Holes,
    /// The page cache served trials, or a part of them.
    PageCache,
    /// The source of the bytes is unknown.
    UnknownSource,
    /// The ceiling was measured, and is exceeded by no more than a probe may be off by chance.
    ProbeNoise,
    /// The machine is virtual: its host may have a cache.
    HostCache,
}

impl Efficiency {
    /// Whether the cell exceeds its ceiling without a known reason.
    pub fn exceeds(&self) -> bool {
        self.share > 1.0 && self.cause.is_none()
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
            let trial = cell.cell.trial();
            let (most_mb_s, most_iops) = match (trial.reads(), trial.writes()) {
                (true, false) => (peaks.read_mb_s, peaks.read_iops),
                (false, true) => (peaks.write_mb_s, peaks.write_iops),
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

    fn cause(&self, cell: &CellAnalysis, share: f64, source: PeakSource) -> Option<ExcessCause> {
        if share <= 1.0 {
            return None;
        }
        let any = |verdict| cell.served.as_ref().is_some_and(|s| s.any(verdict));
        if any(ServedBy::NotStorage) {
            Some(ExcessCause::NotStorage)
        } else if any(ServedBy::Hole) {
            Some(ExcessCause::Holes)
        } else if any(ServedBy::PageCache) {
            Some(ExcessCause::PageCache)
        } else if any(ServedBy::Mixed) || any(ServedBy::Unknown) {
            Some(ExcessCause::UnknownSource)
        } else if source == PeakSource::Measured && share <= MEASURED_SLACK {
            Some(ExcessCause::ProbeNoise)
        } else if self.is_virtual {
            Some(ExcessCause::HostCache)
        } else {
            None
        }
    }
}
