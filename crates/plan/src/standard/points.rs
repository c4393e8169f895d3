//! The cells of each test of a standard, and the cells whose response decides that its rounds are steady.

use iolab_workload::settings::CellSpec;

use crate::experiment::Standard;

/// Bytes of a KiB.
pub(super) const KIB: u64 = 1024;
/// Mixes of the IOPS test, % of reads.
const IOPS_MIXES: [u8; 7] = [100, 95, 65, 50, 35, 5, 0];
/// Sizes of the IOPS test.
const IOPS_SIZES: [u64; 8] = [
    1024 * KIB,
    128 * KIB,
    64 * KIB,
    32 * KIB,
    16 * KIB,
    8 * KIB,
    4 * KIB,
    512,
];
/// A cell of a test, by the settings that distinguish it from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MeasuringPoint {
    read_percent: u8,
    bs: u64,
}

impl MeasuringPoint {
    pub(super) fn is_of(self, cell: &CellSpec) -> bool {
        (cell.trial.read_percent, cell.trial.bs) == (self.read_percent, self.bs)
    }
}

impl Standard {
    /// The cells of the test; for the throughput test, only the sizes that are measured.
    pub(super) fn points(self, cells: &[&CellSpec]) -> Vec<MeasuringPoint> {
        let grid = |mixes: &[u8], sizes: &[u64]| -> Vec<MeasuringPoint> {
            let of_mix = |read_percent: &u8| {
                let read_percent = *read_percent;
                sizes.iter().map(move |bs| MeasuringPoint {
                    read_percent,
                    bs: *bs,
                })
            };
            mixes.iter().flat_map(of_mix).collect()
        };
        match self {
            Self::PtsIops => grid(&IOPS_MIXES, &IOPS_SIZES),
            Self::PtsLatency => grid(&[100, 65, 0], &[8 * KIB, 4 * KIB, 512]),
            Self::PtsThroughput => {
                let sizes = [1024 * KIB, 128 * KIB];
                let measured = |bs: &u64| cells.iter().any(|cell| cell.trial.bs == *bs);
                let own: Vec<u64> = sizes.into_iter().filter(measured).collect();
                match own.is_empty() {
                    true => grid(&[100, 0], &sizes),
                    false => grid(&[100, 0], &own),
                }
            }
            Self::PtsWriteSaturation => grid(&[0], &[4 * KIB]),
        }
    }

    /// The cells whose response decides that the rounds are steady.
    pub(super) fn tracked(self, cells: &[&CellSpec]) -> Vec<MeasuringPoint> {
        let access = |read_percent, kib: u64| MeasuringPoint {
            read_percent,
            bs: kib * KIB,
        };
        match self {
            Self::PtsIops => vec![access(0, 4), access(65, 64), access(100, 1024)],
            Self::PtsLatency => vec![access(0, 4)],
            Self::PtsWriteSaturation | Self::PtsThroughput => {
                let points = self.points(cells).into_iter();
                points.filter(|point| point.read_percent == 0).collect()
            }
        }
    }
}
