//! Tests of a standard that experiments follow, and where an experiment or its run deviates from them.
//!
//! Source: SNIA, Solid State Storage (SSS) Performance Test Specification (PTS), version 2.0.2 (2020). docs/METHODS.md says which clauses
//! were read in the standard's own text and which are interpretations.

use std::time::Duration;

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::{CacheState, Pattern};

use crate::experiment::{Experiment, Standard};

/// What is known of a target and of what was done to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TargetFacts {
    /// Its medium; `None` before it is opened.
    pub medium: Option<Medium>,
    /// Usable bytes; `None` where unknown.
    pub bytes: Option<u64>,
    /// Whether its volatile write cache is on; `None` where unknown.
    pub write_cache: Option<bool>,
    /// Whether it took the trims of the preparation; `None` where unknown.
    pub trimmed: Option<bool>,
    /// Size of the requests of its sequential passes, bytes; `None` where unknown.
    pub pass_bs: Option<u64>,
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A block device.
    Device,
    /// A file on a file system.
    File,
    /// A computed disk, which is new when a run starts.
    Model,
}

/// Something in which an experiment or its run is not the test of the standard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deviation {
    /// Some trials are shorter than a minute; the shortest.
    RoundTime(Duration),
    /// Some trials have no time, or may end before it.
    Bounded,
    /// The target is a file, so that a file system lies between.
    File,
    /// This share of the target is used, less than the client test's 75 %.
    ActiveRange(f64),
    /// Nothing is done in the place of a purge.
    NotPurged,
    /// The range is trimmed, which is no purge.
    TrimmedOnly,
    /// The target refused to be trimmed.
    TrimRefused,
    /// Other sequential passes than the test's come first.
    Passes,
    /// The volatile write cache is on, which the enterprise test turns off.
    WriteCacheOn,
    /// The test's cells that are missing, of how many.
    Cells {
        /// Missing ones.
        missing: usize,
        /// All of the test.
        of: usize,
    },
    /// So many cells that the test does not have.
    FurtherCells(usize),
    /// A round has its cells in another order.
    Order,
    /// Requests go to other addresses, or have other sizes.
    Requests,
    /// Another setting has another value in some cells than in the test; its name.
    Setting(&'static str),
    /// Other cells are tracked.
    Tracked,
    /// The window is shorter, its limits are wider, or there may be more rounds.
    Limits,
    /// Some requests go through the page cache.
    PageCache,
    /// Between points of the composite test no writes restore the state.
    NoPreWrites,
}

impl Deviation {
    /// Whether it makes the test smaller than the standard's: shorter, or on less of the device.
    pub fn scales(self) -> bool {
        matches!(
            self,
            Self::RoundTime(_) | Self::Bounded | Self::ActiveRange(_) | Self::File
        )
    }
}

/// Least share of the target that a test uses.
const ACTIVE_RANGE: f64 = 0.75;
/// Time of a trial of the tests.
const ROUND_TIME: Duration = Duration::from_secs(60);
const KIB: u64 = 1024;
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
/// Threads and depths of the composite test.
const LOADS: [u32; 6] = [32, 16, 8, 4, 2, 1];

/// Settings that the tests leave to the operator, that change nothing on the target, or of which other deviations tell.
const OPEN: [&str; 35] = [
    // Other deviations.
    "bs",
    "bs_mix",
    "pattern",
    "cache",
    "time",
    "bytes",
    "requests",
    // The range, the target and the machine.
    "region",
    "offset",
    "first_offset",
    "target",
    "ranks",
    "hosts",
    "layout",
    "descriptors",
    "stripe",
    "system",
    // How the host issues and observes requests.
    "backend",
    "batch",
    "registered",
    "sqpoll",
    "sqpoll_cpu",
    "iopoll",
    "noatime",
    "cpus",
    "placement",
    "memory_node",
    "buffer_init",
    "buffer_memory",
    "nice",
    "realtime",
    "latency",
    "latency_over_time",
    "hardware_counters",
    "trace",
];

/// Addresses and sizes of the composite test.
const COMPOSITE_ZONES: &str = "zones:50/5:30/15:20/80";
const COMPOSITE_MIX: &str =
    "512:4,1KiB:1,1536:1,2KiB:1,2560:1,3KiB:1,3584:1,4KiB:67,8KiB:10,16KiB:7,32KiB:3,64KiB:3";

/// A cell of a test by what tells it from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Access { read_percent: u8, bs: u64 },
    Load { threads: u32, depth: u32 },
}

impl Point {
    fn is_of(self, cell: &CellSpec) -> bool {
        let trial = &cell.trial;
        match self {
            Self::Access { read_percent, bs } => {
                (trial.read_percent, trial.bs) == (read_percent, bs)
            }
            Self::Load { threads, depth } => (trial.threads, trial.depth) == (threads, depth),
        }
    }
}

impl Standard {
    /// Where an experiment with these cells deviates, and its target as far as it is known.
    pub fn deviations(
        self,
        experiment: &Experiment,
        cells: &[&CellSpec],
        target: TargetFacts,
    ) -> Vec<Deviation> {
        let all = [
            shortest(cells).map(Deviation::RoundTime),
            cells
                .iter()
                .any(|cell| may_end_early(cell))
                .then_some(Deviation::Bounded),
            (target.medium == Some(Medium::File)).then_some(Deviation::File),
            active_range(cells, target),
            self.purge(experiment, target),
            self.passes(experiment, cells, target),
            (target.write_cache == Some(true)).then_some(Deviation::WriteCacheOn),
            self.missing(cells),
            self.further(cells),
            self.is_in_other_order(cells).then_some(Deviation::Order),
            self.requests_differ(cells).then_some(Deviation::Requests),
            self.tracks_others(experiment, cells)
                .then_some(Deviation::Tracked),
            self.limits_are_wider(experiment)
                .then_some(Deviation::Limits),
            cells
                .iter()
                .any(|cell| cell.trial.cache != CacheState::Direct)
                .then_some(Deviation::PageCache),
            (self == Self::PtsComposite).then_some(Deviation::NoPreWrites),
        ];
        let settings = self.settings_differ(cells);
        let settings = settings.into_iter().map(Deviation::Setting);
        all.into_iter().flatten().chain(settings).collect()
    }

    /// Its experiment, as it is built in.
    fn builtin(self) -> Option<Experiment> {
        Experiment::find(self.name()).ok()
    }

    /// The settings that have other values in some of these cells than in all of the test's.
    fn settings_differ(self, cells: &[&CellSpec]) -> Vec<&'static str> {
        let Some(wanted) = self.builtin().and_then(|own| own.base().ok()) else {
            return Vec::new();
        };
        let differs = |setting: &&Setting| {
            let wanted = setting.get(&wanted);
            cells.iter().any(|cell| setting.get(cell) != wanted)
        };
        let compared = SETTINGS.iter();
        let compared = compared.filter(|setting| !self.leaves_open(setting.name));
        compared
            .filter(differs)
            .map(|setting| setting.name)
            .collect()
    }

    /// Whether the test leaves a setting to the operator, or another deviation tells of it.
    fn leaves_open(self, setting: &str) -> bool {
        match setting {
            "threads" | "depth" => self != Self::PtsLatency,
            "read_percent" => self != Self::PtsComposite,
            _ => OPEN.contains(&setting),
        }
    }

    /// The cells of the test; of the throughput test those of the sizes that are measured.
    fn points(self, cells: &[&CellSpec]) -> Vec<Point> {
        let grid = |mixes: &[u8], sizes: &[u64]| -> Vec<Point> {
            let of_mix = |read_percent: &u8| {
                let read_percent = *read_percent;
                sizes.iter().map(move |bs| Point::Access {
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
            Self::PtsComposite => {
                let of = |threads: u32| LOADS.map(|depth| Point::Load { threads, depth });
                LOADS.into_iter().flat_map(of).collect()
            }
        }
    }

    /// The cells whose response tells that the rounds are steady.
    fn tracked(self, cells: &[&CellSpec]) -> Vec<Point> {
        let access = |read_percent, kib: u64| Point::Access {
            read_percent,
            bs: kib * KIB,
        };
        match self {
            Self::PtsIops => vec![access(0, 4), access(65, 64), access(100, 1024)],
            Self::PtsLatency => vec![access(0, 4)],
            Self::PtsWriteSaturation | Self::PtsThroughput => {
                let points = self.points(cells).into_iter();
                let writes = |point: &Point| {
                    matches!(
                        point,
                        Point::Access {
                            read_percent: 0,
                            ..
                        }
                    )
                };
                points.filter(writes).collect()
            }
            Self::PtsComposite => vec![Point::Load {
                threads: 32,
                depth: 32,
            }],
        }
    }

    fn purge(self, experiment: &Experiment, target: TargetFacts) -> Option<Deviation> {
        match (experiment.design.precondition.trim, target.medium) {
            // A run on a model starts with a new one.
            (_, Some(Medium::Model)) => None,
            (false, _) => Some(Deviation::NotPurged),
            (true, _) if target.trimmed == Some(false) => Some(Deviation::TrimRefused),
            (true, _) => Some(Deviation::TrimmedOnly),
        }
    }

    fn passes(
        self,
        experiment: &Experiment,
        cells: &[&CellSpec],
        target: TargetFacts,
    ) -> Option<Deviation> {
        let asked = experiment.design.precondition;
        let other_size = target.pass_bs.is_some_and(|bs| bs != asked.seq_bs);
        let is_so = match self {
            Self::PtsIops | Self::PtsLatency => (asked.seq, asked.seq_bs) == (2, 128 * KIB),
            Self::PtsThroughput => {
                asked.seq == 2 && cells.iter().all(|cell| cell.trial.bs == asked.seq_bs)
            }
            Self::PtsWriteSaturation | Self::PtsComposite => asked.seq == 0,
        };
        (!is_so || asked.rand > 0 || other_size).then_some(Deviation::Passes)
    }

    fn missing(self, cells: &[&CellSpec]) -> Option<Deviation> {
        let points = self.points(cells);
        let lacks = |point: &&Point| !cells.iter().any(|cell| point.is_of(cell));
        let missing = points.iter().filter(lacks).count();
        (missing > 0).then_some(Deviation::Cells {
            missing,
            of: points.len(),
        })
    }

    /// The cells that are none of the test, or one of it once more.
    fn further(self, cells: &[&CellSpec]) -> Option<Deviation> {
        let points = self.points(cells);
        let known = points.iter();
        let known = known.filter(|point| cells.iter().any(|cell| point.is_of(cell)));
        let further = cells.len() - known.count().min(cells.len());
        (further > 0).then_some(Deviation::FurtherCells(further))
    }

    fn is_in_other_order(self, cells: &[&CellSpec]) -> bool {
        let points = self.points(cells);
        let place = |cell: &&CellSpec| points.iter().position(|point| point.is_of(cell));
        let places: Vec<usize> = cells.iter().filter_map(place).collect();
        !places.is_sorted()
    }

    fn requests_differ(self, cells: &[&CellSpec]) -> bool {
        let is_so = |cell: &&CellSpec| {
            let (pattern, mix) = (&cell.trial.pattern, &cell.trial.bs_mix);
            match self {
                Self::PtsIops | Self::PtsLatency | Self::PtsWriteSaturation => {
                    *pattern == Pattern::RandReplace && mix.is_none()
                }
                Self::PtsThroughput => *pattern == Pattern::Seq && mix.is_none(),
                Self::PtsComposite => {
                    pattern.to_string() == COMPOSITE_ZONES
                        && mix
                            .as_ref()
                            .is_some_and(|mix| mix.to_string() == COMPOSITE_MIX)
                }
            }
        };
        !cells.iter().all(is_so) || cells.iter().any(|cell| cell.has_groups())
    }

    fn tracks_others(self, experiment: &Experiment, cells: &[&CellSpec]) -> bool {
        let tracked = experiment.tracked(cells.iter().copied());
        let wanted = self.tracked(cells);
        let is_wanted = |place: usize| wanted.iter().any(|point| point.is_of(cells[place]));
        tracked.len() != wanted.len() || !tracked.into_iter().all(is_wanted)
    }

    fn limits_are_wider(self, experiment: &Experiment) -> bool {
        let usual = self.builtin();
        let usual = usual.and_then(|own| own.design.precondition.rounds_of_cells());
        let asked = experiment.design.precondition.rounds_of_cells();
        asked.zip(usual).is_some_and(|(asked, usual)| {
            asked.window < usual.window
                || asked.range > usual.range
                || asked.slope > usual.slope
                || asked.rounds > usual.rounds
        })
    }
}

/// The shortest trial, where it is shorter than the standard's.
fn shortest(cells: &[&CellSpec]) -> Option<Duration> {
    let times = cells.iter().filter_map(|cell| cell.trial.limit.time);
    times.min().filter(|time| *time < ROUND_TIME)
}

/// Whether a trial has no time, or another limit that may end it before.
fn may_end_early(cell: &CellSpec) -> bool {
    let limit = cell.trial.limit;
    limit.time.is_none() || limit.bytes.is_some() || limit.requests.is_some()
}

fn active_range(cells: &[&CellSpec], target: TargetFacts) -> Option<Deviation> {
    let used = cells.iter().map(|cell| cell.trial.region).max()?;
    let share = used as f64 / target.bytes.filter(|bytes| *bytes > 0)? as f64;
    // Regions are cut to whole units.
    (share < ACTIVE_RANGE - 0.005 && target.medium != Some(Medium::File))
        .then_some(Deviation::ActiveRange(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;

    /// A setting that is renamed would fall out of the list, and be told as a deviation of every run.
    #[test]
    fn what_the_operator_chooses_are_settings() {
        for name in OPEN {
            assert!(Setting::find(name).is_some(), "{name}");
        }
    }

    fn deviations(name: &str, sets: &[&str], target: TargetFacts) -> Vec<Deviation> {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets {
            experiment.apply_set(set).expect(set);
        }
        let cells = cells(&experiment).expect("cells");
        let specs: Vec<&CellSpec> = cells.iter().map(|cell| &cell.spec).collect();
        let standard = experiment.standard.expect("of a standard");
        standard.deviations(&experiment, &specs, target)
    }

    const PURGED: TargetFacts = TargetFacts {
        medium: Some(Medium::Model),
        bytes: None,
        write_cache: Some(false),
        trimmed: None,
        pass_bs: None,
    };

    #[test]
    fn full_rounds_on_a_purged_device_are_the_tests() {
        for name in ["pts-iops", "pts-lat", "pts-wsat", "pts-tp"] {
            assert_eq!(deviations(name, &["time=60s"], PURGED), [], "{name}");
        }
        let composite = deviations("pts-cbw", &["time=60s"], PURGED);
        assert_eq!(composite, [Deviation::NoPreWrites]);
    }

    #[test]
    fn each_deviation_is_named() {
        let device = TargetFacts {
            medium: Some(Medium::Device),
            bytes: Some(1 << 40),
            write_cache: Some(true),
            trimmed: Some(false),
            pass_bs: None,
        };
        let full = "time=60s";
        for (sets, target, expected) in [
            (
                &["time=2s"][..],
                PURGED,
                vec![Deviation::RoundTime(Duration::from_secs(2))],
            ),
            (
                &[full, "region=256GiB"],
                device,
                vec![
                    Deviation::ActiveRange(0.25),
                    Deviation::TrimRefused,
                    Deviation::WriteCacheOn,
                ],
            ),
            (
                &[full],
                TargetFacts {
                    medium: Some(Medium::File),
                    ..TargetFacts::default()
                },
                vec![Deviation::File, Deviation::TrimmedOnly],
            ),
            (
                &[full, "precondition=seq:1+steady:round=cells"],
                TargetFacts::default(),
                vec![Deviation::NotPurged, Deviation::Passes],
            ),
            (
                &[full, "bs=4k,64k,1M"],
                PURGED,
                vec![
                    Deviation::Cells {
                        missing: 35,
                        of: 56,
                    },
                    Deviation::Order,
                ],
            ),
            (
                &[full, "bs=8k"],
                PURGED,
                vec![
                    Deviation::Cells {
                        missing: 49,
                        of: 56,
                    },
                    Deviation::Tracked,
                ],
            ),
            (
                &[
                    full,
                    "precondition=trim+seq:2/128k+steady:round=cells,range=30%",
                ],
                PURGED,
                vec![Deviation::Limits],
            ),
            (&[full, "cache=cold"], PURGED, vec![Deviation::PageCache]),
            (&[full, "pattern=rand"], PURGED, vec![Deviation::Requests]),
            (&[full, "bytes=1M"], PURGED, vec![Deviation::Bounded]),
            (
                &[full, "read_percent=100,95,65,50,35,20,5,0"],
                PURGED,
                vec![Deviation::FurtherCells(8)],
            ),
            (
                &[
                    full,
                    "precondition=trim+seq:2/128k+steady:round=cells,rounds=26",
                ],
                PURGED,
                vec![Deviation::Limits],
            ),
            (
                &[full],
                TargetFacts {
                    pass_bs: Some(4096),
                    ..PURGED
                },
                vec![Deviation::Passes],
            ),
            (
                &[full, "rate=1000", "sync=each"],
                PURGED,
                vec![Deviation::Setting("sync"), Deviation::Setting("rate")],
            ),
            (
                &[full, "thinktime=1ms"],
                PURGED,
                vec![Deviation::Setting("thinktime")],
            ),
            (
                &[full, "content=zero"],
                PURGED,
                vec![Deviation::Setting("content")],
            ),
            (
                &[full, "threads=2", "depth=16", "backend=libaio"],
                PURGED,
                vec![],
            ),
        ] {
            assert_eq!(deviations("pts-iops", sets, target), expected, "{sets:?}");
        }
        let load = ["time=60s", "depth=2", "backend=libaio"];
        let latency = deviations("pts-lat", &load, PURGED);
        assert_eq!(latency, [Deviation::Setting("depth")]);
        let mixed = deviations("pts-cbw", &["time=60s", "read_percent=40"], PURGED);
        let expected = [Deviation::NoPreWrites, Deviation::Setting("read_percent")];
        assert_eq!(mixed, expected);
    }
}
