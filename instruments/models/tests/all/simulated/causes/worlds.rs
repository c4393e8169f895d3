//! Models with planted causes.

use std::time::Duration;

use iolab_models::definition::parts::{
    CacheDefinition, LatencyDefinition, LimitDefinition, NoiseDefinition, PartDefinition, Rate,
    ServerDefinition, SplitDefinition, StallDefinition, WriteBackDefinition,
};
use iolab_models::definition::{Definition, built_in};
use iolab_why::phenomenon::{Fall, PhenomenonKind, Tail};

/// A model with planted causes, and the measurement on it.
pub(super) struct World {
    pub(super) name: &'static str,
    /// The model around which noise of 3 % is put in each trial.
    pub(super) model: PartDefinition,
    pub(super) experiment: &'static [&'static str],
    /// The suspects that are causes; empty if no suspect is a cause.
    pub(super) planted: &'static [&'static str],
    /// The share of the difference that goes if the only planted part is switched off in the model.
    pub(super) share: Option<f64>,
    /// The ratio and the kind of a phenomenon to explain if there is nothing to explain.
    pub(super) made_up: Option<(f64, PhenomenonKind)>,
}

/// A made-up fall, for worlds without one.
const FALL: PhenomenonKind = PhenomenonKind::Loads(Fall {
    first_bytes: 4 << 20,
    first: Duration::from_millis(500),
    whole_bytes: 11 << 20,
    whole: Duration::from_secs(2),
    factor: 0.4,
    after_bytes: 8_388_608.0,
    levels_mb_s: [8.4, 3.4],
});
/// A made-up tail, for worlds without one.
const TAIL: PhenomenonKind = PhenomenonKind::Quantiles(Tail {
    quantiles: (2e5, 1e6),
    iops: 4e3,
    time: Duration::from_millis(300),
});

/// Memory that is large enough for all regions.
fn memory() -> PartDefinition {
    PartDefinition::Memory(4 << 30)
}

/// Reads and writes of `us` microseconds.
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

/// A cache of `bytes` bytes that writes fill at 13 MB/s and that drains at 2 MB/s, in front of storage with equally fast
/// reads.
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

/// Credits of `credits` requests, which 2000 a second use up, and a rate of bytes that large requests reach.
fn request_credits(credits: f64, inner: PartDefinition) -> PartDefinition {
    limited(Some(bursts(2e3, credits)), steady(8e7), inner)
}

/// Credits of bytes, which 20 MB/s use up.
fn byte_credits(inner: PartDefinition) -> PartDefinition {
    limited(None, bursts(2e7, 2e7), inner)
}

/// A limit of `bytes` bytes per second.
fn limit(bytes: f64, inner: PartDefinition) -> PartDefinition {
    limited(None, steady(bytes), inner)
}

fn steady(sustained: f64) -> Rate {
    Rate {
        sustained,
        burst: None,
        credits: 0.0,
    }
}

/// Rates of requests, which count one for each 256 KiB, and of bytes.
fn limited(requests: Option<Rate>, bytes: Rate, inner: PartDefinition) -> PartDefinition {
    PartDefinition::Limit(Box::new(LimitDefinition {
        request_bytes: if requests.is_some() { 256 << 10 } else { 0 },
        requests,
        bytes: Some(bytes),
        inner,
    }))
}

fn one_at_a_time(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Server(Box::new(ServerDefinition { slots: 1, inner }))
}

/// Stands still for 10 ms with each request of this number.
fn stalled(every: u64, inner: PartDefinition) -> PartDefinition {
    PartDefinition::Stall(Box::new(StallDefinition {
        stall_ms: 10.0,
        every,
        mean_ms: None,
        inner,
    }))
}

/// Takes several times as long with one request in a hundred.
fn uneven(inner: PartDefinition) -> PartDefinition {
    PartDefinition::Noise(Box::new(NoiseDefinition {
        sigma: 0.8,
        drift_sigma: 0.0,
        drift_ms: 1000.0,
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

/// The hard disk of the catalogue with each access taking 2 ms, whatever its place; with a buffer of `segments` segments of
/// at most 1 MiB.
fn even_disk(segments: u32) -> PartDefinition {
    let text = built_in("sata-7200").expect("built in");
    let mut model = Definition::parse(text).expect("valid").model;
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
const QUEUED: &[&str] = &[
    "pattern=rand", "bs=4k", "backend=libaio", "depth=4", "bytes=none", "time=300ms",
];
/// As [`QUEUED`], for trials with fewer requests per second.
const QUEUED_LONGER: &[&str] = &[
    "pattern=rand", "bs=4k", "backend=libaio", "depth=4", "bytes=none", "time=1s",
];
const QUEUED_WRITES: &[&str] = &["workload=WR", "sync=none", "bs=4k", "bytes=none", "time=2s"];
const REACHING: &[&str] = &[
    "pattern=rand", "bs=4k", "backend=libaio", "depth=2", "size=66M", "bytes=none", "time=200ms",
];
const DURABLE_TAIL: &[&str] = &[
    "workload=WR", "sync=odsync", "bs=4k", "bytes=none", "time=500ms",
];
const THREADS: &[&str] = &["threads=1,8", "bs=64k", "time=50ms"];

fn world(
    name: &'static str,
    model: PartDefinition,
    experiment: &'static [&'static str],
    planted: &'static [&'static str],
) -> World {
    World {
        name,
        model,
        experiment,
        planted,
        share: None,
        made_up: None,
    }
}

/// As [`world`], with one cause that explains everything.
fn alone(
    name: &'static str,
    model: PartDefinition,
    experiment: &'static [&'static str],
    planted: &'static [&'static str],
) -> World {
    World {
        share: Some(1.0),
        ..world(name, model, experiment, planted)
    }
}

pub(super) fn worlds() -> Vec<World> {
    let mut all = Vec::from(differences());
    all.extend(serial_servers());
    all.extend(falls());
    all.extend(nothing());
    all.extend(tails());
    all
}

/// Two cells that differ, with a cause that can be taken away.
fn differences() -> [World; 10] {
    [
        // One request at a time: with more in flight, the costs of a miss would overlap.
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
            made_up: Some((10.0, PhenomenonKind::Cells)),
            ..world(
                "read-ahead, flushes",
                write_back(even_disk(2)),
                DURABLE,
                &["read-ahead", "durability"],
            )
        },
    ]
}

/// Two cells whose difference no suspect explains.
fn serial_servers() -> [World; 3] {
    [
        world(
            "a serial server",
            one_at_a_time(latency(400.0)),
            THREADS,
            &[],
        ),
        world(
            "stalls, a serial server",
            one_at_a_time(stalled(20, latency(400.0))),
            THREADS,
            &[],
        ),
        world(
            "requests split at 16 KiB, a serial server",
            split(one_at_a_time(latency(500.0))),
            SIZES,
            &[],
        ),
    ]
}

/// Throughput that falls over time.
fn falls() -> [World; 3] {
    [
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
    ]
}

/// Made-up phenomena that no run of the model shows.
fn nothing() -> [World; 3] {
    [
        World {
            made_up: Some((0.7, PhenomenonKind::Cells)),
            ..world("nothing", latency(200.0), SMALL, &[])
        },
        World {
            made_up: Some((0.7, FALL)),
            ..world("nothing over time", latency(500.0), WRITES, &[])
        },
        World {
            made_up: Some((0.7, FALL)),
            ..world("nothing over time, reads", latency(500.0), READS, &[])
        },
    ]
}

/// Slow requests: p99 against the median of one cell.
fn tails() -> [World; 10] {
    [
        world(
            "a tail: stalls of writes that fill no cache",
            one_at_a_time(stalled(50, write_back(latency(200.0)))),
            QUEUED_WRITES,
            &[],
        ),
        // One request in 150 is slow, and three others wait for it.
        World {
            // The noise has a tail too.
            share: Some(0.92),
            ..world(
                "a tail: requests queue after a slow one",
                one_at_a_time(stalled(150, latency(400.0))),
                QUEUED,
                &["queueing"],
            )
        },
        // The table covers all of the region but 2 MiB; others in flight make no difference to a miss.
        alone(
            "a tail: misses of a mapping table",
            mapped(latency(500.0)),
            REACHING,
            &["reach"],
        ),
        // Durable writes pass the cache, and stall in the storage below it.
        alone(
            "a tail: writes wait for storage that stalls",
            write_back(stalled(50, latency(200.0))),
            DURABLE_TAIL,
            &["durability"],
        ),
        world(
            "a tail: stalls independent of load",
            stalled(50, latency(400.0)),
            QUEUED,
            &[],
        ),
        world(
            "a tail: stalls in a serial server",
            one_at_a_time(stalled(20, latency(400.0))),
            QUEUED_LONGER,
            &[],
        ),
        // Without durability all writes are seven times as fast, and equally uneven.
        world(
            "a tail: noise of writes that a cache makes faster",
            uneven(write_back(latency(200.0))),
            DURABLE_TAIL,
            &[],
        ),
        world("a tail: noise", uneven(latency(400.0)), QUEUED, &[]),
        World {
            made_up: Some((5.0, TAIL)),
            ..world("no tail", latency(200.0), QUEUED, &[])
        },
        World {
            made_up: Some((5.0, TAIL)),
            ..world("no tail, writes", latency(200.0), DURABLE_TAIL, &[])
        },
    ]
}
