//! The parameter files of DiskSim 4.0 (Carnegie Mellon and University of Michigan) as definitions of disks.
//!
//! A drive is described by four files: geometry and mechanics (`.model`), a seek curve (`.seek`), the controller
//! (`.diskspecs`) and how they are put together, with the bus (`.parv`). The text form is a tree of named values:
//!
//! ```text
//! kind name { key = value, key = kind { ... }, key = [ value, ... ] }
//! ```

mod syntax;

use syntax::{Block, Value, find};

use crate::definition::disk::{
    AlmostHits, Buffer, Bus, DiskDefinition, ExtraDisconnect, Geometry, Mechanics, NextSeek,
    Overhead, Policy, Queue, ReadAhead, Rotation, Seek, SeekCurve, Sparing, TrackOrder, WriteBack,
    Zone,
};

/// The texts of a drive's files.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Geometry and mechanics.
    pub model: &'a str,
    /// The seek curve, if the model names one.
    pub seek: Option<&'a str>,
    /// The controller.
    pub diskspecs: &'a str,
    /// The bus, if it is known.
    pub parv: Option<&'a str>,
}

/// A definition, and the settings of the files that it lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The disk.
    pub disk: DiskDefinition,
    /// One sentence for each setting that was left out.
    pub left_out: Vec<String>,
}

/// Reads the files of a drive.
///
/// # Errors
///
/// What is missing or invalid, in words.
pub fn import(files: &Files<'_>) -> Result<Imported, String> {
    let model = find(files.model, "dm_disk")?;
    let specs = find(files.diskspecs, "disksim_disk")?;
    let mut left_out = Vec::new();
    let geometry = geometry(&model)?;
    let mechanics = mechanics(model.block("Mechanical Model")?, files.seek)?;
    let bus = bus(&specs, files.parv)?;
    let queue = queue(&specs, &mut left_out);
    for (key, what) in [
        (
            "Allow sneaky partial read hits",
            "partial hits while the heads are busy",
        ),
        (
            "Allow sneaky intermediate read hits",
            "hits found later in the queue",
        ),
        (
            "Allow write prebuffering",
            "data of waiting writes before the heads are free",
        ),
        (
            "Disconnect write if seek",
            "leaving the bus for a seek within a write",
        ),
    ] {
        if specs.flag(key) {
            left_out.push(format!("{key}: {what} are not modelled"));
        }
    }
    for (key, what) in [
        (
            "Read directly to buffer",
            "a second buffer between medium and segment is not modelled",
        ),
        (
            "Write hit stop prefetch",
            "reading ahead of what is overwritten ends all the same",
        ),
    ] {
        if specs.number(key) == Some(0.0) {
            left_out.push(format!("{key} = 0: {what}"));
        }
    }
    if model
        .block("Mechanical Model")?
        .flag("Percent error in rpms")
    {
        left_out.push("Percent error in rpms: the speed is exact".into());
    }
    let disk = DiskDefinition {
        block: 512,
        geometry,
        mechanics,
        overhead: overhead(&specs),
        bus,
        buffer: buffer(&specs),
        queue,
    };
    Ok(Imported { disk, left_out })
}

fn geometry(model: &Block) -> Result<Geometry, String> {
    let layout = model.block("Layout Model")?;
    if layout.kind != "dm_layout_g1" {
        return Err(format!(
            "layout {} is not supported; dm_layout_g1 is",
            layout.kind
        ));
    }
    let turns = |block: &Block| {
        block
            .text("Skew units")
            .map(|units| units.trim_matches('"') == "revolutions")
    };
    let by_turns = turns(layout).unwrap_or(false);
    let mut zones = Vec::new();
    for zone in layout.list("Zones") {
        let Value::Block(zone) = zone else {
            return Err("a zone is not a block".into());
        };
        let sectors = zone.required("Blocks per track")?;
        // Skews are whole sectors unless they are in revolutions.
        let angle = |key: &str| {
            let value = zone.or_zero(key);
            if turns(zone).unwrap_or(by_turns) {
                value * sectors
            } else {
                value.trunc()
            }
        };
        let whole = |key: &str| {
            zone.numbers(key)
                .into_iter()
                .map(|n| n as u64)
                .collect::<Vec<_>>()
        };
        zones.push(Zone {
            cylinders: [
                zone.required("First cylinder number")? as u32,
                zone.required("Last cylinder number")? as u32,
            ],
            sectors: sectors as u32,
            offset: angle("Offset of first block"),
            track_skew: angle("Skew for track switch"),
            cylinder_skew: angle("Skew for cylinder switch"),
            reserved: zone.or_zero("Empty space at zone front") as u64,
            spares: zone.or_zero("Number of spares") as u64,
            slips: whole("slips"),
            defects: whole("defects")
                .chunks_exact(2)
                .filter(|p| p[0] != p[1])
                .map(|p| [p[0], p[1]])
                .collect(),
        });
    }
    // Some files state one cylinder less than the last zone needs.
    let last = zones
        .iter()
        .map(|zone| zone.cylinders[1] + 1)
        .max()
        .unwrap_or(0);
    Ok(Geometry {
        surfaces: model.required("Number of data surfaces")? as u32,
        cylinders: last.max(model.required("Number of cylinders")? as u32),
        order: match layout.or_zero("LBN-to-PBN mapping scheme") as u32 {
            0 => TrackOrder::Forward,
            1 => TrackOrder::SerpentineZone,
            2 => TrackOrder::SerpentineDisk,
            other => return Err(format!("mapping scheme {other} is not known")),
        },
        spares: match layout.or_zero("Sparing scheme used") as u32 {
            0 => Sparing::None,
            1 => Sparing::Tracks,
            2 => Sparing::Cylinder,
            3 => Sparing::Track,
            4 => Sparing::CylinderSlipToEnd,
            5 => Sparing::CylinderFront,
            6 => Sparing::CylinderFrontSlipToEnd,
            7 => Sparing::EndOfZone,
            8 => Sparing::Range,
            9 => Sparing::Zone,
            10 => Sparing::ZoneSlipToEnd,
            other => return Err(format!("sparing scheme {other} is not known")),
        },
        range: layout
            .number("Rangesize for sparing")
            .unwrap_or(1.0)
            .max(1.0) as u32,
        zone: zones,
    })
}

fn mechanics(block: &Block, seek: Option<&str>) -> Result<Mechanics, String> {
    let three = || -> Result<[f64; 3], String> {
        Ok([
            block.required("Single cylinder seek time")?,
            block.required("Average seek time")?,
            block.required("Full strobe seek time")?,
        ])
    };
    let formula = |first: Vec<f64>| -> Result<Seek, String> {
        let values = block.numbers("HPL seek equation values");
        let [limit, short, root, long, line, one] = values[..] else {
            return Err("\"HPL seek equation values\" are not six numbers".into());
        };
        let first = if first.is_empty() && one >= 0.0 {
            vec![one]
        } else {
            first
        };
        Ok(Seek::Curve(SeekCurve {
            limit: limit as u32,
            short: [short, root],
            long: [long, line],
            first,
        }))
    };
    let seek = match block.text("Seek type") {
        Some("constant") => Seek::Constant(block.required("Constant seek time")?),
        Some("linear") => Seek::Lines(three()?),
        Some("curve") => Seek::Lee(three()?),
        Some("hpl") => formula(Vec::new())?,
        Some("hplplus10") => formula(block.numbers("First ten seek times"))?,
        Some("extracted") => {
            let name = block.text("Full seek curve").unwrap_or("of unknown name");
            let text =
                seek.ok_or_else(|| format!("the model needs its seek curve, file {name}"))?;
            Seek::Measured(seek_points(text)?)
        }
        other => return Err(format!("seek type {other:?} is not known")),
    };
    let (rotation, constant) = match block.text("Access time type") {
        Some("constant") => (
            Rotation::Followed,
            Some(block.required("Constant access time")?),
        ),
        Some("averageRotation") => (Rotation::Average, None),
        _ => (Rotation::Followed, None),
    };
    Ok(Mechanics {
        rpm: block.required("Rotation speed (in rpms)")?,
        seek,
        head_switch_ms: block.or_zero("Head switch time"),
        write_settle_ms: block.or_zero("Add. write settling delay"),
        rotation,
        constant_access_ms: constant,
    })
}

/// Reads lines of `cylinders, ms`; a head line may state their number.
fn seek_points(text: &str) -> Result<Vec<[f64; 2]>, String> {
    let mut points: Vec<[f64; 2]> = Vec::new();
    for line in text.lines() {
        let mut numbers = line
            .split([',', ' ', '\t'])
            .filter(|word| !word.is_empty())
            .map(str::parse::<f64>);
        if let (Some(Ok(distance)), Some(Ok(ms))) = (numbers.next(), numbers.next()) {
            points.push([distance, ms]);
        }
    }
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    points.dedup_by_key(|point| point[0] as u64);
    if points.is_empty() {
        Err("the seek curve holds no points".into())
    } else {
        Ok(points)
    }
}

fn bus(specs: &Block, parv: Option<&str>) -> Result<Bus, String> {
    let mut bus = Bus {
        read_block_ms: specs.or_zero("Bulk sector transfer time"),
        write_block_ms: specs.or_zero("Bulk sector transfer time"),
        hold_reads: specs.flag("Hold bus entire read xfer"),
        hold_writes: specs.flag("Hold bus entire write xfer"),
        never_disconnect: specs.flag("Never disconnect"),
    };
    // The slowest bus on the path limits the rate.
    for part in parv.map_or(Ok(Vec::new()), syntax::blocks)? {
        match part.kind.as_str() {
            "disksim_bus" => {
                bus.read_block_ms = bus
                    .read_block_ms
                    .max(part.or_zero("Read block transfer time"));
                bus.write_block_ms = bus
                    .write_block_ms
                    .max(part.or_zero("Write block transfer time"));
            }
            "disksim_ctlr" => {
                let bulk = part.or_zero("Bulk sector transfer time");
                bus.read_block_ms = bus.read_block_ms.max(bulk);
                bus.write_block_ms = bus.write_block_ms.max(bulk);
            }
            _ => {}
        }
    }
    Ok(bus)
}

fn queue(specs: &Block, left_out: &mut Vec<String>) -> Queue {
    let depth = specs.number("Max queue length").unwrap_or(1.0).max(1.0) as u32;
    let scheme = specs.block("Scheduler").map_or(1.0, |block| {
        block.number("Scheduling policy").unwrap_or(1.0)
    }) as u32;
    let policy = match scheme {
        1 => Policy::Fifo,
        2 | 3 | 5 | 6 | 7 => Policy::Elevator,
        _ => Policy::Sptf,
    };
    if depth > 1 && !matches!(scheme, 1 | 3 | 6) {
        left_out.push(format!(
            "Scheduling policy {scheme}: {policy:?} takes its place"
        ));
    }
    Queue {
        policy,
        depth,
        patience_ms: 0.0,
    }
}

fn overhead(specs: &Block) -> Overhead {
    let pair = |kind: &str| {
        [
            specs.or_zero(&format!("{kind} after read")),
            specs.or_zero(&format!("{kind} after write")),
        ]
    };
    let extra = specs
        .flag("Extra write disconnect")
        .then(|| ExtraDisconnect {
            command: specs.or_zero("Extradisc command overhead"),
            disconnect: specs.or_zero("Extradisc disconnect overhead"),
            pause: specs.or_zero("Extradisc inter-disconnect delay"),
            disconnect_again: specs.or_zero("Extradisc 2nd disconnect overhead"),
            seek_delay: specs.or_zero("Extradisc seek delta"),
        });
    Overhead {
        request: specs.or_zero("Per-request overhead time"),
        scale: specs.number("Time scale for overheads").unwrap_or(1.0),
        read_hit: pair("Read hit over."),
        read_miss: pair("Read miss over."),
        write_hit: pair("Write hit over."),
        write_miss: pair("Write miss over."),
        read_complete: specs.or_zero("Read completion overhead"),
        write_complete: specs.or_zero("Write completion overhead"),
        data_preparation: specs.or_zero("Data preparation overhead"),
        reselect: specs.or_zero("First reselect overhead"),
        reselect_again: specs.or_zero("Other reselect overhead"),
        read_disconnect: [
            specs.or_zero("Read disconnect afterread"),
            specs.or_zero("Read disconnect afterwrite"),
        ],
        write_disconnect: specs.or_zero("Write disconnect overhead"),
        extra_disconnect: extra,
        write_seek_least: specs.or_zero("Minimum seek delay"),
    }
}

fn buffer(specs: &Block) -> Buffer {
    Buffer {
        segments: specs
            .number("Number of buffer segments")
            .unwrap_or(1.0)
            .max(1.0) as u32,
        segment_blocks: specs.number("Segment size (in blks)").unwrap_or(256.0) as u64,
        write_segment: specs.flag("Use separate write segment"),
        cache: specs.flag("Enable caching in buffer"),
        read_written: specs.flag("Allow read hits on write data"),
        read_ahead: match specs.or_zero("Buffer continuous read") as u32 {
            0 => ReadAhead::None,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            3 => ReadAhead::Segment,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_least: specs.or_zero("Minimum read-ahead (blks)") as u64,
        read_ahead_most: specs.or_zero("Maximum read-ahead (blks)") as u64,
        read_ahead_over_request: specs.flag("Read-ahead over requested"),
        read_ahead_after_hit: specs.flag("Read-ahead on idle hit"),
        almost_hits: if specs.flag("Allow almost read hits") {
            AlmostHits::Next
        } else {
            AlmostHits::No
        },
        hits_while_busy: specs.flag("Allow sneaky full read hits"),
        partial_hit_at_once: specs.flag("Immed transfer partial hit"),
        read_watermark: specs.or_zero("High (read) water mark"),
        watermark_of_request: specs.flag("Set watermark by reqsize"),
        read_on_arrival: specs.flag("Immediate buffer read"),
        write_on_arrival: specs.flag("Immediate buffer write"),
        keep_passing: specs.flag("Read any free blocks"),
        stop_within_sector: specs.flag("Stop prefetch in sector"),
        // DiskSim has these numbers in its source (disksim_diskcache.c), for drives with extra disconnects.
        write_start: if specs.flag("Extra write disconnect") {
            vec![[1, 10], [45, 15]]
        } else {
            Vec::new()
        },
        write_back: match specs.or_zero("Fast write level") as u32 {
            0 => WriteBack::Off,
            1 => WriteBack::Sequential,
            _ => WriteBack::One,
        },
        join_writes: specs.flag("Combine seq writes"),
        write_back_bytes: 0,
        next_seek: match specs.or_zero("Preseeking level") as u32 {
            0 => NextSeek::AfterCompletion,
            1 => NextSeek::DuringCompletion,
            _ => NextSeek::BeforeCompletion,
        },
    }
}
