//! What the values of a definition may be.
//!
//! A model that keeps to these bounds is made in bounded memory, and its times cannot run over: a request costs no more than
//! hours, and a request is no longer than one system call transfers. Every struct is taken apart whole here, so that a value
//! without a bound does not compile.

use std::fmt::Display;

use crate::definition::Definition;
use crate::definition::disk::{
    Buffer, Bus, DiskDefinition, ExtraDisconnect, Geometry, Mechanics, Overhead, Queue, Seek,
    SeekCurve, Zone,
};
use crate::definition::parts::{
    CacheDefinition, LatencyDefinition, LimitDefinition, NoiseDefinition, PartDefinition,
    RaidDefinition, Rate, RegionDefinition, ServerDefinition, SplitDefinition, StallDefinition,
    WriteBackDefinition,
};
use crate::definition::ssd::{Controller, Flash, Slc, SsdDefinition};

/// What is wrong, in words.
type Checked = Result<(), String>;

/// Longest time of one step of a request, ms.
const STEP_MS: f64 = 10_000.0;
/// The same in microseconds.
const STEP_US: f64 = STEP_MS * 1e3;
/// Most that a step may be shortened by, ms, where a time may be negative.
const SHORTENED_MS: f64 = -1_000.0;
/// Most that a time is multiplied by.
const FACTOR_MAX: f64 = 1_000.0;
/// Largest standard deviation of the logarithm of a time.
const SIGMA_MAX: f64 = 2.0;
/// Shortest and longest time between changes that a model makes by itself, ms: all those of a pause are gone through.
const PERIOD_MS: [f64; 2] = [1.0, 1e9];
/// Longest time of one block on a bus, ms.
const BLOCK_MS: f64 = 10.0;
/// Longest time of one page or block of flash, microseconds.
const FLASH_US: f64 = 1e6;
/// Slowest and fastest rate, MB/s.
const RATE_MB_S: [f64; 2] = [0.01, 1e9];
/// Bytes of a block, a slot, a line or a chunk.
const BLOCK: [u64; 2] = [512, 1 << 30];
/// Most blocks, sectors or cylinders of anything that is looked through.
const MANY: u64 = 1 << 24;
/// Most bytes of a buffer or a cache.
const BUFFER_MAX: u64 = 1 << 50;
/// Most parts of a model.
const PARTS_MAX: usize = 128;
/// Most parts that stand in front of each other.
const DEPTH_MAX: usize = 16;
/// Most entries of all tables that a model looks things up in: cylinders, blocks of flash, and blocks by their valid slots.
const ENTRIES_MAX: u64 = 1 << 24;

/// Refuses a value beyond its bounds, and what is no number.
fn within<T: PartialOrd + Display + Copy>(name: &str, value: T, [least, most]: [T; 2]) -> Checked {
    match value >= least && value <= most {
        true => Ok(()),
        false => Err(format!("{name} = {value}: a model takes {least} to {most}")),
    }
}

fn all<'a, T: PartialOrd + Display + Copy + 'a>(
    name: &str,
    values: impl IntoIterator<Item = &'a T>,
    bounds: [T; 2],
) -> Checked {
    let mut values = values.into_iter();
    values.try_for_each(|value| within(name, *value, bounds))
}

/// Times of steps, ms.
fn steps<'a>(named: impl IntoIterator<Item = (&'a str, f64)>) -> Checked {
    let mut named = named.into_iter();
    named.try_for_each(|(name, ms)| within(name, ms, [0.0, STEP_MS]))
}

/// What a model is made of, as far as it is counted.
#[derive(Default)]
struct Size {
    parts: usize,
    entries: u64,
}

impl Definition {
    /// Checks every value.
    ///
    /// # Errors
    ///
    /// The first that a model does not take, with what it takes.
    pub fn check(&self) -> Checked {
        let Self {
            title: _,
            source: _,
            model,
        } = self;
        part(model, 1, &mut Size::default())
    }
}

fn part(definition: &PartDefinition, depth: usize, size: &mut Size) -> Checked {
    size.parts += 1;
    if depth > DEPTH_MAX || size.parts > PARTS_MAX {
        return Err(format!(
            "a model has at most {PARTS_MAX} parts, of which at most {DEPTH_MAX} stand in front of each other"
        ));
    }
    match definition {
        PartDefinition::Disk(disk) => check_disk(disk, size)?,
        PartDefinition::Ssd(ssd) => check_ssd(ssd, size)?,
        PartDefinition::Memory(bytes) => within("memory", *bytes, [1, i64::MAX as u64])?,
        PartDefinition::Latency(latency) => {
            let LatencyDefinition {
                read_us,
                write_us,
                inner,
            } = &**latency;
            all("latency", [read_us, write_us], [0.0, STEP_US])?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Limit(limit) => {
            let LimitDefinition {
                requests,
                request_bytes: _,
                bytes,
                inner,
            } = &**limit;
            requests.iter().chain(bytes).try_for_each(check_rate)?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Server(server) => {
            let ServerDefinition { slots: _, inner } = &**server;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Cache(cache) => {
            let CacheDefinition {
                bytes,
                line,
                hit_us,
                inner,
            } = &**cache;
            within("bytes", *bytes, [0, BUFFER_MAX])?;
            within("line", *line, BLOCK)?;
            within("hit_us", *hit_us, [0.0, STEP_US])?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Region(region) => {
            let RegionDefinition {
                start: _,
                bytes: _,
                factor,
                read_us,
                write_us,
                inner,
            } = &**region;
            within("factor", *factor, [1.0, FACTOR_MAX])?;
            all("region", [read_us, write_us], [0.0, STEP_US])?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::WriteBack(cache) => {
            let WriteBackDefinition {
                bytes,
                hit_us,
                drain_mb_s,
                inner,
            } = &**cache;
            within("bytes", *bytes, [1, BUFFER_MAX])?;
            within("hit_us", *hit_us, [0.0, STEP_US])?;
            all("drain_mb_s", drain_mb_s, RATE_MB_S)?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Noise(noise) => {
            let NoiseDefinition {
                sigma,
                drift_sigma,
                drift_ms,
                inner,
            } = &**noise;
            all("sigma", [sigma, drift_sigma], [0.0, SIGMA_MAX])?;
            within("drift_ms", *drift_ms, PERIOD_MS)?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Stall(stall) => {
            let StallDefinition {
                stall_ms,
                every: _,
                mean_ms,
                inner,
            } = &**stall;
            within("stall_ms", *stall_ms, [0.0, STEP_MS])?;
            all("mean_ms", mean_ms, PERIOD_MS)?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Split(split) => {
            let SplitDefinition { bytes, inner } = &**split;
            within("bytes", *bytes, BLOCK)?;
            part(inner, depth + 1, size)?;
        }
        PartDefinition::Raid(raid) => {
            let RaidDefinition {
                level: _,
                chunk,
                members,
            } = &**raid;
            within("chunk", *chunk, BLOCK)?;
            for member in members {
                part(member, depth + 1, size)?;
            }
        }
    }
    match size.entries > ENTRIES_MAX {
        true => Err(format!(
            "the tables of the model have {} entries: at most {ENTRIES_MAX} fit into memory",
            size.entries
        )),
        false => Ok(()),
    }
}

fn check_rate(rate: &Rate) -> Checked {
    let Rate {
        sustained,
        burst,
        credits,
    } = rate;
    within("sustained", *sustained, [1e-3, 1e18])?;
    all("burst", burst, [1e-3, 1e18])?;
    within("credits", *credits, [0.0, 1e18])
}

fn check_disk(disk: &DiskDefinition, size: &mut Size) -> Checked {
    let DiskDefinition {
        block,
        geometry,
        mechanics,
        overhead,
        bus,
        buffer,
        queue,
    } = disk;
    within("block", *block, BLOCK)?;
    check_geometry(geometry)?;
    size.entries += u64::from(geometry.cylinders);
    check_mechanics(mechanics)?;
    check_overhead(overhead)?;
    let Bus {
        read_block_ms,
        write_block_ms,
        hold_reads: _,
        hold_writes: _,
        never_disconnect: _,
    } = bus;
    within("read_block_ms", *read_block_ms, [0.0, BLOCK_MS])?;
    within("write_block_ms", *write_block_ms, [0.0, BLOCK_MS])?;
    check_buffer(buffer)?;
    let Queue {
        policy: _,
        depth,
        patience_ms,
    } = queue;
    within("depth", *depth, [0, 1 << 16])?;
    within("patience_ms", *patience_ms, [0.0, 1e9])
}

fn check_geometry(geometry: &Geometry) -> Checked {
    let Geometry {
        surfaces,
        cylinders,
        order: _,
        spares: _,
        range,
        zone,
    } = geometry;
    within("surfaces", *surfaces, [1, 1024])?;
    within("cylinders", *cylinders, [1, MANY as u32])?;
    within("range", *range, [0, MANY as u32])?;
    zone.iter().try_for_each(|zone| {
        let Zone {
            cylinders: _,
            sectors,
            offset,
            track_skew,
            cylinder_skew,
            reserved,
            spares,
            slips,
            defects,
        } = zone;
        within("sectors", *sectors, [1, 1 << 20])?;
        let turned = [offset, track_skew, cylinder_skew];
        all("a skew or offset", turned, [-1e9, 1e9])?;
        within("reserved", *reserved, [0, 1 << 54])?;
        within("spares", *spares, [0, 1 << 32])?;
        all("slips", slips, [0, 1 << 54])?;
        all("defects", defects.iter().flatten(), [0, 1 << 54])
    })
}

fn check_mechanics(mechanics: &Mechanics) -> Checked {
    let Mechanics {
        rpm,
        seek,
        head_switch_ms,
        write_settle_ms,
        rotation: _,
        constant_access_ms,
    } = mechanics;
    within("rpm", *rpm, [60.0, 1e6])?;
    steps([("head_switch_ms", *head_switch_ms)])?;
    within("write_settle_ms", *write_settle_ms, [SHORTENED_MS, STEP_MS])?;
    all("constant_access_ms", constant_access_ms, [0.0, STEP_MS])?;
    // The curve itself is checked for every distance of the disk, when that is built.
    let number = |values: &[f64]| all("seek", values, [-1e9, 1e9]);
    match seek {
        Seek::Constant(ms) => number(&[*ms]),
        Seek::Measured(points) => points.iter().try_for_each(|point| number(point)),
        Seek::Lines(three) | Seek::Lee(three) => number(three),
        Seek::Curve(curve) => {
            let SeekCurve {
                limit: _,
                short,
                long,
                first,
            } = curve;
            [&short[..], long, first].into_iter().try_for_each(number)
        }
    }
}

fn check_overhead(overhead: &Overhead) -> Checked {
    let Overhead {
        request,
        scale,
        read_hit,
        read_miss,
        write_hit,
        write_miss,
        read_complete,
        write_complete,
        data_preparation,
        reselect,
        reselect_again,
        read_disconnect,
        write_disconnect,
        extra_disconnect,
        write_seek_least,
    } = overhead;
    within("scale", *scale, [0.0, 10.0])?;
    steps([
        ("request", *request),
        ("read_complete", *read_complete),
        ("write_complete", *write_complete),
        ("data_preparation", *data_preparation),
        ("reselect", *reselect),
        ("reselect_again", *reselect_again),
        ("write_disconnect", *write_disconnect),
        ("write_seek_least", *write_seek_least),
    ])?;
    for (name, pair) in [
        ("read_hit", read_hit),
        ("read_miss", read_miss),
        ("write_hit", write_hit),
        ("write_miss", write_miss),
        ("read_disconnect", read_disconnect),
    ] {
        all(name, pair, [0.0, STEP_MS])?;
    }
    extra_disconnect.iter().try_for_each(|extra| {
        let ExtraDisconnect {
            command,
            disconnect,
            pause,
            disconnect_again,
            seek_delay,
        } = extra;
        steps([
            ("command", *command),
            ("disconnect", *disconnect),
            ("pause", *pause),
            ("disconnect_again", *disconnect_again),
        ])?;
        within("seek_delay", *seek_delay, [SHORTENED_MS, STEP_MS])
    })
}

fn check_buffer(buffer: &Buffer) -> Checked {
    let Buffer {
        segments,
        segment_blocks,
        write_segment: _,
        cache: _,
        read_written: _,
        read_ahead: _,
        read_ahead_least,
        read_ahead_most,
        read_ahead_over_request: _,
        read_ahead_after_hit: _,
        almost_hits: _,
        hits_while_busy: _,
        partial_hit_at_once: _,
        read_watermark,
        watermark_of_request: _,
        read_on_arrival: _,
        write_on_arrival: _,
        keep_passing: _,
        stop_within_sector: _,
        write_start,
        write_back: _,
        join_writes: _,
        write_back_bytes,
        next_seek: _,
    } = buffer;
    within("segments", *segments, [0, 4096])?;
    for (name, blocks) in [
        ("segment_blocks", segment_blocks),
        ("read_ahead_least", read_ahead_least),
        ("read_ahead_most", read_ahead_most),
    ] {
        within(name, *blocks, [0, MANY])?;
    }
    within("read_watermark", *read_watermark, [0.0, 1.0])?;
    all("write_start", write_start.iter().flatten(), [0, MANY])?;
    within("write_back_bytes", *write_back_bytes, [0, BUFFER_MAX])
}

fn check_ssd(ssd: &SsdDefinition, size: &mut Size) -> Checked {
    let SsdDefinition {
        slot,
        flash,
        over_provisioning,
        collection: _,
        free_blocks,
        controller,
        slc,
    } = ssd;
    within("slot", *slot, BLOCK)?;
    within("over_provisioning", *over_provisioning, [0.0, 100.0])?;
    check_flash(flash)?;
    within("free_blocks", *free_blocks, [0, flash.blocks])?;
    let dies = u64::from(flash.channels) * u64::from(flash.chips) * u64::from(flash.dies);
    let slots = flash.page * u64::from(flash.planes) / slot * u64::from(flash.pages);
    let of_die = u64::from(flash.blocks).saturating_add(slots);
    let entries = dies.saturating_mul(of_die);
    size.entries = size.entries.saturating_add(entries);
    let Controller {
        link_mb_s,
        half_duplex: _,
        command_us,
        read_us,
        long_read_us,
        write_us,
        write_slot_us,
        buffer,
        read_ahead,
        read_unwritten: _,
    } = controller;
    within("link_mb_s", *link_mb_s, RATE_MB_S)?;
    let times = [command_us, read_us, long_read_us, write_us];
    all("a time of the controller", times, [0.0, STEP_US])?;
    within("write_slot_us", *write_slot_us, [0.0, FLASH_US])?;
    within("buffer", *buffer, [0, BUFFER_MAX])?;
    within("read_ahead", *read_ahead, [0, 1 << 30])?;
    slc.iter().try_for_each(|slc| {
        let Slc {
            fixed,
            of_free,
            program_us,
            empty_mb_s,
            idle_after_ms,
        } = slc;
        within("fixed", *fixed, [0, BUFFER_MAX])?;
        within("of_free", *of_free, [0.0, 10.0])?;
        within("program_us", *program_us, [0.0, FLASH_US])?;
        within("empty_mb_s", *empty_mb_s, [0.0, RATE_MB_S[1]])?;
        within("idle_after_ms", *idle_after_ms, [0.0, 1e9])
    })
}

fn check_flash(flash: &Flash) -> Checked {
    let Flash {
        channels,
        chips,
        dies,
        planes,
        blocks,
        pages,
        page,
        read_us,
        program_us,
        erase_us,
        read_spread,
        channel_mb_s,
    } = flash;
    for (name, count) in [
        ("channels", channels),
        ("chips", chips),
        ("dies", dies),
        ("planes", planes),
    ] {
        within(name, *count, [1, 1024])?;
    }
    within("blocks", *blocks, [1, MANY as u32])?;
    within("pages", *pages, [1, 1 << 20])?;
    within("page", *page, BLOCK)?;
    all("read_us", read_us, [0.0, FLASH_US])?;
    all("program_us", program_us, [0.0, FLASH_US])?;
    within("erase_us", *erase_us, [0.0, FLASH_US])?;
    within("read_spread", *read_spread, [0.0, 1.0])?;
    within("channel_mb_s", *channel_mb_s, RATE_MB_S)
}
