//! The share of a device's ceiling that a cell reaches.

use super::{CellAnalysis, DoubtKind, Response};
use iolab_record::ServedBy;
use iolab_record::environment::PeakSource;
use iolab_record::environment::{Environment, KEYS};
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
    pub cause: Option<DoubtKind>,
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
        let (mb_s, iops) = (
            cell.median(Response::Throughput)?,
            cell.median(Response::Iops)?,
        );
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

    fn cause(&self, cell: &CellAnalysis, share: f64, source: PeakSource) -> Option<DoubtKind> {
        let served = cell.served.as_ref();
        let sources = served.into_iter().flat_map(|served| &served.trials);
        let is_elsewhere = |verdict: ServedBy| {
            let is_target = [ServedBy::Device, ServedBy::Network, ServedBy::Model];
            !is_target.contains(&verdict)
        };
        let sources = sources.filter(|(verdict, _)| is_elsewhere(*verdict));
        let of_source = sources.map(|(verdict, _)| DoubtKind::of_source(*verdict));
        let is_noise = source == PeakSource::Measured && share <= MEASURED_SLACK;
        let of_ceiling = [
            (is_noise, DoubtKind::ProbeNoise),
            (self.is_virtual, DoubtKind::HostCache),
        ];
        let of_ceiling = of_ceiling.into_iter().filter(|(holds, _)| *holds);
        let first = of_source
            .min()
            .or(of_ceiling.map(|(_, cause)| cause).next());
        first.filter(|_| share > 1.0)
    }
}
