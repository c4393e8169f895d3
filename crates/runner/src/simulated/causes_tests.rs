//! Grades of what is said of causes: parts of models are planted as causes, alone and in pairs, and a run without them is made to explain what they
//! do.
//!
//! `IOLAB_GRADE_RUNS=40 cargo test --release -p iolab-runner --lib causes -- --nocapture` prints the table of METHODS.md, and with
//! `IOLAB_GRADE_ONLY=TEXT` only rows that hold this text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tests::measure;
use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::{Again, CauseVerdict, Claim, Fall, Suspected, claims, phenomena};
use iolab_diskmodel::definition::Definition;
use iolab_diskmodel::definition::parts::{
    CacheDefinition, LatencyDefinition, LimitDefinition, NoiseDefinition, PartDefinition, Rate,
    ServerDefinition, SplitDefinition, StallDefinition, WriteBackDefinition,
};
use iolab_plan::experiment::{Experiment, Phenomenon};
use iolab_plan::suspect::{MachineState, Sides};
use iolab_record::RunRecord;
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;

/// Seeds of each world where nothing else is asked for.
const SEEDS: u64 = 2;
/// A model with planted causes, and what is measured on it.
struct World {
    name: &'static str,
    /// What noise of 3 % a trial is put around.
    model: PartDefinition,
    experiment: &'static [&'static str],
    /// The suspects that are causes; none where no suspect is.
    planted: &'static [&'static str],
    /// The share that goes where the only planted part is switched off in the model.
    share: Option<f64>,
    /// The ratio of the run that is to be explained, where there is nothing to explain.
    made_up: Option<f64>,
}

/// Memory that is large enough for all regions.
fn memory() -> PartDefinition {
    PartDefinition::Memory(4 << 30)
}

/// Reads and writes of so many microseconds.
fn latency(us: f64) -> PartDefinition {
    PartDefinition::Latency(Box::new(LatencyDefinition {
        read_us: us,
        write_us: us,
        inner: memory(),
    }))
}

/// A mapping table that covers 64 MiB, 256 KiB an entry.
fn mapped(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Cache(Box::new(CacheDefinition {
        bytes: 64 << 20,
        line: 256 << 10,
        hit_us: 20.0,
        inner,
    }))
}

fn write_back(inner: PartDefinition) -> PartDefinition {
    PartDefinition::WriteBack(Box::new(WriteBackDefinition {
        bytes: 1 << 30,
        hit_us: 30.0,
        drain_mb_s: None,
        inner,
    }))
}

/// A cache of so many bytes that writes fill at 13 MB/s and that is emptied at 2 MB/s, before storage whose reads are as fast as it.
fn filling(bytes: u64) -> PartDefinition {
    PartDefinition::WriteBack(Box::new(WriteBackDefinition {
        bytes,
        hit_us: 300.0,
        drain_mb_s: Some(2.0),
        inner: PartDefinition::Latency(Box::new(LatencyDefinition {
            read_us: 250.0,
            write_us: 2000.0,
            inner: memory(),
        })),
    }))
}

/// A tenth of a rate once credits are used up.
fn bursts(burst: f64, credits: f64) -> Rate {
    Rate {
        sustained: burst / 10.0,
        burst: Some(burst),
        credits,
    }
}

/// Credits of so many requests, which 2000 a second use up, and a rate of bytes that large requests reach.
fn request_credits(credits: f64, inner: PartDefinition) -> PartDefinition {
    PartDefinition::Limit(Box::new(LimitDefinition {
        requests: Some(bursts(2e3, credits)),
        request_bytes: 256 << 10,
        bytes: Some(Rate {
            sustained: 8e7,
            burst: None,
            credits: 0.0,
        }),
        inner,
    }))
}

/// Credits of bytes, which 20 MB/s use up.
fn byte_credits(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Limit(Box::new(LimitDefinition {
        requests: None,
        request_bytes: 0,
        bytes: Some(bursts(2e7, 2e7)),
        inner,
    }))
}

/// So many bytes per second.
fn limit(bytes: f64, inner: PartDefinition) -> PartDefinition {
    PartDefinition::Limit(Box::new(LimitDefinition {
        requests: None,
        request_bytes: 0,
        bytes: Some(Rate {
            sustained: bytes,
            burst: None,
            credits: 0.0,
        }),
        inner,
    }))
}

fn one_at_a_time(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Server(Box::new(ServerDefinition { slots: 1, inner }))
}

/// Stands still for 10 ms with every 20th request.
fn stalled(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Stall(Box::new(StallDefinition {
        stall_ms: 10.0,
        every: 20,
        mean_ms: None,
        inner,
    }))
}

/// Requests above 16 KiB in pieces.
fn split(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Split(Box::new(SplitDefinition {
        bytes: 16 << 10,
        inner,
    }))
}

/// The hard disk of the catalogue with each access taking 2 ms, whatever its place; with a buffer of so many segments of a MiB or less.
fn even_disk(segments: u32) -> PartDefinition {
    let (_, definition) = iolab_runfile::model_definition("sata-7200").expect("built in");
    let mut model = definition.model;
    if let PartDefinition::Disk(disk) = &mut model {
        disk.mechanics.constant_access_ms = Some(2.0);
        disk.buffer.segments = segments;
        disk.buffer.segment_blocks = disk.buffer.segment_blocks.min(256);
    }
    model
}

const ORDER: &[&str] = &["pattern=seq,rand", "bs=64k", "time=50ms"];
const SMALL: &[&str] = &["pattern=seq,rand", "bs=4k", "time=50ms"];
const SIZES: &[&str] = &["bs=4k,64k", "time=50ms"];
const DIRECTION: &[&str] = &["read_percent=0,100", "bs=4k", "time=50ms"];
const DURABLE: &[&str] = &["workload=WS,RS", "sync=each", "bs=4k", "time=50ms"];
const WRITES: &[&str] = &["read_percent=0", "bs=4k", "bytes=none", "time=3s"];
const LARGE_WRITES: &[&str] = &["read_percent=0", "bs=16k", "bytes=none", "time=2s"];
const READS: &[&str] = &["read_percent=100", "bs=4k", "bytes=none", "time=2s"];
const THREADS: &[&str] = &["threads=1,8", "bs=64k", "time=50ms"];

fn worlds() -> Vec<World> {
    let world = |name, model: PartDefinition, experiment, planted| World {
        name,
        model,
        experiment,
        planted,
        share: None,
        made_up: None,
    };
    let alone = |name, model: PartDefinition, experiment, planted| World {
        share: Some(1.0),
        ..world(name, model, experiment, planted)
    };
    vec![
        // One request at a time: else more of them in flight would overlap what a miss costs.
        alone(
            "mapping table of 64 MiB",
            one_at_a_time(mapped(latency(200.0))),
            SMALL,
            &["reach"],
        ),
        alone("read-ahead", even_disk(2), ORDER, &["read-ahead"]),
        alone(
            "500 us a request, 50 MB/s",
            limit(5e7, latency(500.0)),
            SIZES,
            &["waiting"],
        ),
        alone(
            "write-back cache",
            one_at_a_time(write_back(latency(200.0))),
            DIRECTION,
            &["write-cache"],
        ),
        alone(
            "flushes of 100 us",
            latency(100.0),
            DURABLE,
            &["durability"],
        ),
        alone(
            "400 MB/s",
            limit(4e8, latency(400.0)),
            THREADS,
            &["bandwidth"],
        ),
        world(
            "mapping table, overlapping misses",
            mapped(latency(200.0)),
            SMALL,
            &["reach", "waiting"],
        ),
        // More requests in flight overlap both sides alike.
        alone(
            "write-back cache, overlapping requests",
            write_back(latency(200.0)),
            DIRECTION,
            &["write-cache"],
        ),
        world(
            "read-ahead, cache of 16 MiB",
            even_disk(32),
            ORDER,
            &["read-ahead", "reach"],
        ),
        World {
            // The disk is as earlier trials have left it in the run that shows it, and no such run says how new disks differ.
            made_up: Some(10.0),
            ..world(
                "read-ahead, flushes",
                write_back(even_disk(2)),
                DURABLE,
                &["read-ahead", "durability"],
            )
        },
        world(
            "a serial server",
            one_at_a_time(latency(400.0)),
            THREADS,
            &[],
        ),
        world(
            "stalls, a serial server",
            one_at_a_time(stalled(latency(400.0))),
            THREADS,
            &[],
        ),
        world(
            "requests split at 16 KiB, a serial server",
            split(one_at_a_time(latency(500.0))),
            SIZES,
            &[],
        ),
        alone(
            "a fall: a write cache of 16 MiB fills",
            filling(16 << 20),
            WRITES,
            &["written-data"],
        ),
        alone(
            "a fall: credits of requests",
            request_credits(1000.0, latency(250.0)),
            LARGE_WRITES,
            &["small-requests"],
        ),
        world(
            "a fall: credits of bytes",
            byte_credits(latency(100.0)),
            WRITES,
            &[],
        ),
        World {
            made_up: Some(0.7),
            ..world("nothing", latency(200.0), SMALL, &[])
        },
        World {
            made_up: Some(0.7),
            ..world("nothing over time", latency(500.0), WRITES, &[])
        },
        World {
            made_up: Some(0.7),
            ..world("nothing over time, reads", latency(500.0), READS, &[])
        },
    ]
}

/// What was said of a world, over its seeds.
#[derive(Default)]
struct Grade {
    runs: usize,
    named: usize,
    planted: usize,
    accused: usize,
    innocent: usize,
    cleared: usize,
    /// Runs in which at least half is called not explained.
    unexplained: usize,
    absent: usize,
    shares: Vec<f64>,
}

fn definition(world: &World, folder: &Path) -> PathBuf {
    let path = folder.join("world.toml");
    let definition = Definition {
        title: world.name.to_owned(),
        source: vec!["made up".to_owned()],
        model: PartDefinition::Noise(Box::new(NoiseDefinition {
            sigma: 0.05,
            drift_sigma: 0.03,
            drift_ms: 1000.0,
            inner: world.model.clone(),
        })),
    };
    let text = definition.to_toml().expect("TOML");
    std::fs::write(&path, text).expect("written");
    path
}

fn of_world(world: &World, seeds: std::ops::Range<u64>) -> Grade {
    let folder = tempfile::tempdir().expect("a folder");
    let model = definition(world, folder.path());
    let model = model.to_str().expect("text");
    let mut grade = Grade::default();
    for seed in seeds {
        let mut experiment = Experiment::find("read-size").expect("built in");
        for set in world
            .experiment
            .iter()
            .chain(&["trials_max=12", "budget=20s"])
        {
            experiment.apply_set(set).expect("a setting");
        }
        let shown = measure(model, experiment, seed);
        let inquiry = Experiment::inquiry(&asked(world, &shown)).expect("an inquiry");
        let found = measure(model, inquiry, seed + 1000);
        grade.add(world, &analyse(&found));
    }
    grade
}

/// The greatest phenomenon of a run; where there is none, as if its two cells differed, or its only one fell.
fn asked(world: &World, shown: &RunRecord) -> Phenomenon {
    let analysis = analyse(shown);
    let found = phenomena(&analysis).expect("plain trials").first().copied();
    let spec = |id: usize| shown.cells[id].spec.clone();
    let fall = Fall {
        first_bytes: 4 << 20,
        first: Duration::from_millis(500),
        whole: Duration::from_secs(2),
        factor: 0.4,
        after_bytes: f64::from(8 << 20),
        levels_mb_s: [8.4, 3.4],
    };
    let took = |fall: Option<Fall>| {
        fall.map_or([Duration::from_secs(1); 2], |fall| [fall.first, fall.whole])
    };
    let (sides, fall, seen, expected): ([CellSpec; 2], _, _, _) = match (world.made_up, found) {
        (Some(ratio), _) if shown.cells.len() == 1 => {
            (fall.sides(&spec(0)), Some(fall), ratio, 1.0)
        }
        (Some(ratio), _) => ([spec(0), spec(1)], None, ratio, 1.0),
        (None, Some(one)) => {
            let sides = one.sides(&analysis).expect("its cells");
            (sides, one.fall, one.seen, one.expected)
        }
        (None, None) => panic!(
            "{}: nothing is shown: {:?}",
            world.name,
            claims(&[&analysis])
        ),
    };
    let [base, other] = sides;
    Phenomenon {
        text: world.name.to_owned(),
        seen,
        expected,
        sides: Sides {
            base,
            other,
            is_model: true,
            is_fall: fall.is_some(),
            machine: MachineState::default(),
        },
        took: took(fall),
        response: Response::Throughput,
        precondition: shown_precondition(shown),
        changes_inside: false,
        budget: Duration::from_secs(600),
        fill: Duration::ZERO,
    }
}

fn shown_precondition(shown: &RunRecord) -> iolab_plan::precondition::Precondition {
    let definition = Experiment::from_toml(&shown.experiment.toml, "run").expect("its own");
    definition.design.precondition
}

impl Grade {
    fn add(&mut self, world: &World, analysis: &Analysis) {
        self.runs += 1;
        let all = claims(&[analysis]);
        let mut suspects: Vec<(CauseVerdict, Suspected)> = Vec::new();
        for claim in all {
            match claim {
                Claim::Reproduced(found) => {
                    self.absent += usize::from(found.again == Again::NotReproduced);
                    let rest = found.unexplained.map_or(0.0, |share| share.share);
                    self.unexplained += usize::from(rest >= 0.5);
                }
                Claim::Suspects(found) => {
                    let own = found.suspects.into_iter();
                    suspects.extend(own.map(|one| (found.verdict, one)));
                }
                other => panic!("{other:?}"),
            }
        }
        for (verdict, one) in suspects {
            let is_accused = verdict < CauseVerdict::Cleared;
            match world.planted.contains(&one.suspect.as_str()) {
                true => {
                    self.named += usize::from(is_accused);
                    self.shares
                        .extend(one.share.map(|share| share.share.min(1.0)));
                }
                false => {
                    self.innocent += 1;
                    self.accused += usize::from(is_accused);
                    self.cleared += usize::from(verdict == CauseVerdict::Cleared);
                    if is_accused {
                        println!("{}: accused {} {:?}", world.name, one.suspect, one.share);
                    }
                }
            }
        }
        self.planted += world.planted.len();
    }

    fn median_share(&self) -> Option<f64> {
        iolab_stats::median(&self.shares)
    }
}

#[test]
fn planted_causes_are_named_and_innocent_suspects_are_not() {
    let seeds = std::env::var("IOLAB_GRADE_RUNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seeds = seeds.unwrap_or(SEEDS);
    let (mut named, mut planted, mut accused, mut innocent) = (0, 0, 0, 0);
    println!(
        "| planted | runs | named | share, median | innocent suspects | accused | cleared | not explained | not there |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let only = std::env::var("IOLAB_GRADE_ONLY").unwrap_or_default();
    let asked = worlds().into_iter();
    let asked: Vec<World> = asked.filter(|world| world.name.contains(&only)).collect();
    assert!(!asked.is_empty(), "no row holds {only}");
    for world in asked {
        let grade = of_world(&world, 0..seeds);
        let share = grade.median_share();
        println!(
            "| {} | {} | {} of {} | {} | {} | {} | {} | {} | {} |",
            world.name,
            grade.runs,
            grade.named,
            grade.planted,
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            grade.innocent,
            grade.accused,
            grade.cleared,
            grade.unexplained,
            grade.absent,
        );
        if let (Some(truth), Some(share)) = (world.share, share) {
            assert!((share - truth).abs() <= 0.1, "{}: {share}", world.name);
        }
        if world.planted.is_empty() && world.made_up.is_some() {
            assert!(grade.absent * 100 >= grade.runs * 95, "{}", world.name);
        } else if world.planted.is_empty() {
            assert!(grade.unexplained * 100 >= grade.runs * 90, "{}", world.name);
        }
        named += grade.named;
        planted += grade.planted;
        accused += grade.accused;
        innocent += grade.innocent;
    }
    println!("named {named} of {planted}, accused {accused} of {innocent}");
    assert!(named * 100 >= planted * 90, "{named} of {planted}");
    assert!(accused * 100 <= innocent * 5, "{accused} of {innocent}");
}
