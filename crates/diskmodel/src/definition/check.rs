//! Checks the values of a definition.
//!
//! Within these bounds, a model needs limited memory and its times cannot overflow: a request takes at most hours, and is no
//! longer than one system call transfers. Every struct is destructured exhaustively here, so that a value without a bound does
//! not compile.

use std::fmt::Display;

use super::{Controller, Flash, Slc, SsdDefinition};
use crate::definition::Definition;
use crate::definition::disk::{
    Buffer, Bus, DiskDefinition, ExtraDisconnect, Geometry, Mechanics, Overhead, Queue, Seek,
    SeekCurve, Zone,
};
use crate::definition::parts::{
    CacheDefinition, LatencyDefinition, LimitDefinition, NoiseDefinition, PartDefinition, Rate,
    RegionDefinition, ServerDefinition, SplitDefinition, StallDefinition, WriteBackDefinition,
};

/// An error describes the invalid value in words.
type Checked = Result<(), String>;

/// Longest time of one step of a request, ms.
const STEP_MS: f64 = 10_000.0;
/// Longest time of one step of a request, microseconds.
const STEP_US: f64 = STEP_MS * 1e3;
/// Longest time by which a step may shorten a request, ms, where a time may be negative.
const SHORTENED_MS: f64 = -1_000.0;
/// Most that a time is multiplied by.
const FACTOR_MAX: f64 = 1_000.0;
/// Largest standard deviation of the logarithm of a time.
const SIGMA_MAX: f64 = 2.0;
/// Shortest and longest time between changes that a model makes by itself, ms. After a pause, the model goes
/// through all changes in it one by one: the shortest time bounds that work.
const PERIOD_MS: [f64; 2] = [1.0, 1e9];
/// Longest time of one block on a bus, ms.
const BLOCK_MS: f64 = 10.0;
/// Longest time of one page or block of flash, microseconds.
const FLASH_US: f64 = 1e6;
/// Slowest and fastest rate, MB/s.
const RATE_MB_S: [f64; 2] = [0.01, 1e9];
/// Bytes of a block, slot, line or chunk.
const BLOCK: [u64; 2] = [512, 1 << 30];
/// Most blocks, sectors or cylinders in a structure that is searched.
const MANY: u64 = 1 << 24;
/// Most bytes of a buffer or a cache.
const BUFFER_MAX: u64 = 1 << 50;
/// Most parts of a model.
const DEPTH_MAX: usize = 16;
/// Most entries in all tables of a model: cylinders, blocks of flash, and blocks by their valid slots.
const ENTRIES_MAX: u64 = 1 << 24;

/// A number, or several of one type, each within the same bounds.
trait Numbers<T> {
    /// Refuses the first number outside the bounds, and NaN.
    fn check(&self, name: &str, bounds: [T; 2]) -> Checked;
}

/// The types of numbers that definitions have.
trait Number: PartialOrd + Display + Copy {}
impl Number for f64 {}
impl Number for u32 {}
impl Number for u64 {}

impl<T: Number> Numbers<T> for T {
    fn check(&self, name: &str, [least, most]: [T; 2]) -> Checked {
        match *self >= least && *self <= most {
            true => Ok(()),
            false => Err(format!("{name} = {self}: a model takes {least} to {most}")),
        }
    }
}

impl<T: Number, V: Numbers<T>> Numbers<T> for [V] {
    fn check(&self, name: &str, bounds: [T; 2]) -> Checked {
        self.iter().try_for_each(|value| value.check(name, bounds))
    }
}

impl<T: Number, V: Numbers<T>, const N: usize> Numbers<T> for [V; N] {
    fn check(&self, name: &str, bounds: [T; 2]) -> Checked {
        self.as_slice().check(name, bounds)
    }
}

impl<T: Number, V: Numbers<T>> Numbers<T> for Vec<V> {
    fn check(&self, name: &str, bounds: [T; 2]) -> Checked {
        self.as_slice().check(name, bounds)
    }
}

impl<T: Number, V: Numbers<T>> Numbers<T> for Option<V> {
    fn check(&self, name: &str, bounds: [T; 2]) -> Checked {
        self.as_slice().check(name, bounds)
    }
}

/// Checks the numbers of a value. Each field has bounds, or takes anything (`any`), or is bound to its name for
/// the code that follows (`then`).
macro_rules! bounds {
    ($value:expr => $type:ident { $($field:ident: $bounds:expr),* $(,)? } $(any [$($free:ident),*])? $(then [$($rest:ident),*])?) => {
        // A field that is left out is a compile error here, and the error names it.
        let _ = |of: $type| $type { $($field: of.$field,)* $($($free: of.$free,)*)? $($($rest: of.$rest,)*)? };
        let $type { $($field,)* $($($free: _,)*)? $($($rest,)*)? } = $value;
        $(Numbers::check($field, stringify!($field), $bounds)?;)*
    };
}

/// Times of steps of a request, ms.
const STEP: [f64; 2] = [0.0, STEP_MS];
/// Times of a part, microseconds.
const PART_US: [f64; 2] = [0.0, STEP_US];

impl Definition {
    /// Checks every value.
    ///
    /// # Errors
    ///
    /// A message with the first invalid value and the valid range.
    pub fn check(&self) -> Checked {
        bounds!(self => Definition {} any [title, source] then [model]);
        part(model, 1)
    }
}

fn part(definition: &PartDefinition, depth: usize) -> Checked {
    if depth > DEPTH_MAX {
        return Err(format!("a model has at most {DEPTH_MAX} parts"));
    }
    match definition {
        PartDefinition::Disk(disk) => check_disk(disk)?,
        PartDefinition::Ssd(ssd) => check_ssd(ssd)?,
        PartDefinition::Memory(memory) => memory.check("memory", [1, i64::MAX as u64])?,
        PartDefinition::Latency(latency) => {
            bounds!(&**latency => LatencyDefinition { read_us: PART_US, write_us: PART_US } then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Limit(limit) => {
            bounds!(&**limit => LimitDefinition {} any [request_bytes] then [requests, bytes, inner]);
            requests.iter().chain(bytes).try_for_each(check_rate)?;
            part(inner, depth + 1)?;
        }
        PartDefinition::Server(server) => {
            bounds!(&**server => ServerDefinition {} any [slots] then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Cache(cache) => {
            bounds!(&**cache => CacheDefinition { bytes: [0, BUFFER_MAX], line: BLOCK, hit_us: PART_US } then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Region(region) => {
            bounds!(&**region => RegionDefinition { factor: [1.0, FACTOR_MAX], read_us: PART_US, write_us: PART_US } any [start, bytes] then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::WriteBack(cache) => {
            bounds!(&**cache => WriteBackDefinition { bytes: [1, BUFFER_MAX], hit_us: PART_US, drain_mb_s: RATE_MB_S } then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Noise(noise) => {
            bounds!(&**noise => NoiseDefinition { sigma: [0.0, SIGMA_MAX], drift_sigma: [0.0, SIGMA_MAX], drift_ms: PERIOD_MS } then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Stall(stall) => {
            bounds!(&**stall => StallDefinition { stall_ms: STEP, mean_ms: PERIOD_MS } any [every] then [inner]);
            part(inner, depth + 1)?;
        }
        PartDefinition::Split(split) => {
            bounds!(&**split => SplitDefinition { bytes: BLOCK } then [inner]);
            part(inner, depth + 1)?;
        }
    }
    Ok(())
}

/// Refuses more entries in the tables of a model than fit into memory.
fn check_entries(entries: u64) -> Checked {
    match entries > ENTRIES_MAX {
        true => Err(format!(
            "the tables of the model have {entries} entries: at most {ENTRIES_MAX} fit into memory"
        )),
        false => Ok(()),
    }
}

fn check_rate(rate: &Rate) -> Checked {
    bounds!(rate => Rate { sustained: [1e-3, 1e18], burst: [1e-3, 1e18], credits: [0.0, 1e18] });
    Ok(())
}

fn check_disk(disk: &DiskDefinition) -> Checked {
    bounds!(disk => DiskDefinition { block: BLOCK } then [geometry, mechanics, overhead, bus, buffer, queue]);
    check_geometry(geometry)?;
    check_entries(u64::from(geometry.cylinders))?;
    check_mechanics(mechanics)?;
    check_overhead(overhead)?;
    bounds!(bus => Bus { read_block_ms: [0.0, BLOCK_MS], write_block_ms: [0.0, BLOCK_MS] } any [hold_reads, hold_writes, never_disconnect]);
    check_buffer(buffer)?;
    bounds!(queue => Queue { depth: [0, 1 << 16], patience_ms: [0.0, 1e9] } any [policy]);
    Ok(())
}

fn check_geometry(geometry: &Geometry) -> Checked {
    bounds!(geometry => Geometry {
        surfaces: [1, 1024], cylinders: [1, MANY as u32], range: [0, MANY as u32],
    } any [order, spares] then [zone]);
    zone.iter().try_for_each(|zone| {
        bounds!(zone => Zone {
            sectors: [1, 1 << 20], offset: [-1e9, 1e9], track_skew: [-1e9, 1e9], cylinder_skew: [-1e9, 1e9], reserved: [0, 1 << 54],
            spares: [0, 1 << 32], slips: [0, 1 << 54], defects: [0, 1 << 54],
        } any [cylinders]);
        Ok(())
    })
}

fn check_mechanics(mechanics: &Mechanics) -> Checked {
    bounds!(mechanics => Mechanics {
        rpm: [60.0, 1e6], head_switch_ms: STEP, write_settle_ms: [SHORTENED_MS, STEP_MS], constant_access_ms: STEP,
    } any [rotation] then [seek]);
    // Building the disk checks the curve for every distance.
    const SEEK: [f64; 2] = [-1e9, 1e9];
    match seek {
        Seek::Constant(ms) => ms.check("seek", SEEK),
        Seek::Measured(points) => points.check("seek", SEEK),
        Seek::Lines(three) | Seek::Lee(three) => three.check("seek", SEEK),
        Seek::Curve(curve) => {
            bounds!(curve => SeekCurve { short: SEEK, long: SEEK, first: SEEK } any [limit]);
            Ok(())
        }
    }
}

fn check_overhead(overhead: &Overhead) -> Checked {
    bounds!(overhead => Overhead {
        scale: [0.0, 10.0], request: STEP, read_complete: STEP, write_complete: STEP, data_preparation: STEP, reselect: STEP,
        reselect_again: STEP, write_disconnect: STEP, write_seek_least: STEP, read_hit: STEP, read_miss: STEP, write_hit: STEP,
        write_miss: STEP, read_disconnect: STEP,
    } then [extra_disconnect]);
    extra_disconnect.iter().try_for_each(|extra| {
        bounds!(extra => ExtraDisconnect {
            command: STEP, disconnect: STEP, pause: STEP, disconnect_again: STEP, seek_delay: [SHORTENED_MS, STEP_MS],
        });
        Ok(())
    })
}

fn check_buffer(buffer: &Buffer) -> Checked {
    bounds!(buffer => Buffer {
        segments: [0, 4096], segment_blocks: [0, MANY], read_ahead_least: [0, MANY], read_ahead_most: [0, MANY],
        read_watermark: [0.0, 1.0], write_start: [0, MANY], write_back_bytes: [0, BUFFER_MAX],
    } any [
        write_segment, cache, read_written, read_ahead, read_ahead_over_request, read_ahead_after_hit, almost_hits,
        hits_while_busy, partial_hit_at_once, watermark_of_request, read_on_arrival, write_on_arrival, keep_passing,
        stop_within_sector, write_back, join_writes, next_seek
    ]);
    Ok(())
}

fn check_ssd(ssd: &SsdDefinition) -> Checked {
    bounds!(ssd => SsdDefinition { slot: BLOCK, over_provisioning: [0.0, 100.0] } any [collection] then [flash, free_blocks, controller, slc]);
    check_flash(flash)?;
    free_blocks.check("free_blocks", [0, flash.blocks])?;
    let dies = u64::from(flash.channels) * u64::from(flash.chips) * u64::from(flash.dies);
    let slots = flash.page * u64::from(flash.planes) / slot * u64::from(flash.pages);
    let of_die = u64::from(flash.blocks).saturating_add(slots);
    let entries = dies.saturating_mul(of_die);
    check_entries(entries)?;
    bounds!(controller => Controller {
        link_mb_s: RATE_MB_S, command_us: PART_US, read_us: PART_US, long_read_us: PART_US, write_us: PART_US,
        write_slot_us: [0.0, FLASH_US], buffer: [0, BUFFER_MAX], read_ahead: [0, 1 << 30],
    } any [half_duplex, read_unwritten]);
    slc.iter().try_for_each(|slc| {
        bounds!(slc => Slc {
            fixed: [0, BUFFER_MAX], of_free: [0.0, 10.0], program_us: [0.0, FLASH_US], empty_mb_s: [0.0, RATE_MB_S[1]],
            idle_after_ms: [0.0, 1e9],
        });
        Ok(())
    })
}

fn check_flash(flash: &Flash) -> Checked {
    bounds!(flash => Flash {
        channels: [1, 1024], chips: [1, 1024], dies: [1, 1024], planes: [1, 1024], blocks: [1, MANY as u32], pages: [1, 1 << 20],
        page: BLOCK, read_us: [0.0, FLASH_US], program_us: [0.0, FLASH_US], erase_us: [0.0, FLASH_US], read_spread: [0.0, 1.0],
        channel_mb_s: RATE_MB_S,
    });
    Ok(())
}
