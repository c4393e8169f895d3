//! iolab-limits: limits of storage in the formats of programs that take them.
//!
//! Files to begin with: `limit.rs` finds and judges the cells, `lib.rs` writes them.

mod limit;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::MARGIN;
use iolab_command::Lists;
use iolab_record::environment::{Environment, KEYS};
use iolab_report::document::Document;
use iolab_report::export::{ExportFormat, Judged, Writer};
use iolab_workload::system_settings::{SystemSetting, SystemSettings};
use iolab_workload::trial::WorkloadCode;
use iolab_workload::units::format_bytes;
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

use limit::{Limit, Measured, Point, Storage, storages};

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        documents: vec![Document::of::<Vec<LimitRow>>(
            "limits", "iolab export --format limits",
        )],
        formats: FORMATS.to_vec(),
        ..Lists::default()
    }
}

/// The formats of this instrument.
pub const FORMATS: [ExportFormat; 3] = [
    ExportFormat {
        name: "iocost",
        words: "The line of a disk for io.cost.model of the kernel, from a run of limits-iocost",
        extensions: &[],
        writer: Writer::Judged(iocost_lines),
    },
    ExportFormat {
        name: "seastar",
        words: "io_properties.yaml of Seastar (ScyllaDB, Redpanda), from a run of limits-seastar",
        extensions: &["yaml", "yml"],
        writer: Writer::Judged(seastar_properties),
    },
    ExportFormat {
        name: "limits",
        words: "JSON: the limits of both, with 95 % intervals",
        extensions: &["json"],
        writer: Writer::Judged(rows),
    },
];

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Limit")]
struct LimitRow {
    /// The target.
    target: String,
    /// The format that has the limit: `iocost` or `seastar`.
    format: &'static str,
    #[serde(flatten)]
    limit: Limit,
}

/// The limits of all targets, of each format of which a point was measured.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no point was measured, or some points of a format only.
fn rows(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut rows, mut notes, mut is_open) = (Vec::new(), Vec::new(), false);
    for storage in storages(runs, |target, _| Ok(target.to_owned()))? {
        let random = random_bs(&storage);
        for (format, points, experiment) in [
            ("iocost", &IOCOST_POINTS[..], IOCOST),
            ("seastar", &seastar_points(random)[..], SEASTAR),
        ] {
            let cells = points.iter().map(|point| point.cell(&storage));
            let cells: Vec<_> = cells.collect::<Result<_>>()?;
            if cells.iter().all(Option::is_none) {
                continue;
            }
            let measured = Measured::of(runs, &storage, points, experiment)?;
            is_open |= !measured.reasons.is_empty();
            notes.extend(measured.notes(&storage.name));
            rows.extend(measured.limits.into_iter().map(|limit| LimitRow {
                target: storage.name.clone(),
                format,
                limit,
            }));
        }
    }
    if rows.is_empty() && !is_open {
        return Err(Error::usage("no limit was measured")
            .hint("measure limits with: iolab study --suite limits"));
    }
    let text = serde_json::to_string_pretty(&rows)
        .map_err(|error| Error::failed(format!("cannot write the limits: {error}")))?;
    Ok(Judged {
        text: (!is_open).then(|| text + "\n"),
        notes,
    })
}

/// The experiment with the points of the kernel.
const IOCOST: &str = "limits-iocost";
/// The experiment with the points of Seastar.
const SEASTAR: &str = "limits-seastar";

const fn rate(name: &'static str, workload: WorkloadCode, bs: u64, depth: (u32, u32)) -> Point {
    Point {
        name,
        is_rate: true,
        workload,
        bs,
        depth,
        threads: 1,
    }
}

/// The reason against requests that did not pass as they were issued.
const CHANGED: &str = "a scheduler or merges may have changed the requests; measure with --change-system --set system=scheduler:none+nomerges:1";

const fn iops(
    name: &'static str,
    workload: WorkloadCode,
    bs: u64,
    depth: u32,
    threads: u32,
) -> Point {
    Point {
        name,
        is_rate: false,
        workload,
        bs,
        depth: (depth, depth),
        threads,
    }
}

/// The parameters, in their order in the line. Several threads have a depth of 64 each, as jobs of the script.
const IOCOST_POINTS: [Point; 6] = [
    rate("rbps", WorkloadCode::RS, 128 << 20, (1, 1)),
    iops("rseqiops", WorkloadCode::RS, 4096, 64, 1),
    iops("rrandiops", WorkloadCode::RR, 4096, 64, 1),
    rate("wbps", WorkloadCode::WS, 128 << 20, (1, 1)),
    iops("wseqiops", WorkloadCode::WS, 4096, 64, 1),
    iops("wrandiops", WorkloadCode::WR, 4096, 64, 1),
];

/// The lines of all disks for `io.cost.model` of the kernel.
///
/// Sources: `tools/cgroup/iocost_coef_gen.py`, `block/blk-iocost.c` and Documentation/admin-guide/cgroup-v2.rst of Linux.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a target that is not a disk with a queue, or a point without a cell.
fn iocost_lines(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut text, mut notes, mut is_open) = (String::new(), Vec::new(), false);
    for disk in storages(runs, number)? {
        let mut measured = Measured::of(runs, &disk, &IOCOST_POINTS, IOCOST)?;
        for point in &IOCOST_POINTS {
            if let Some((_, cell)) = point.cell(&disk)?
                && !passes_requests_on(&cell.cell.spec.system)
            {
                measured.forbid(point, CHANGED.to_owned());
            }
        }
        is_open |= !measured.reasons.is_empty();
        notes.extend(measured.notes(&disk.name));
        notes.extend(share(&disk));
        let parameters = measured.limits.iter();
        let parameters = parameters.map(|limit| format!(" {}={}", limit.name, limit.value));
        text.extend([disk.name.clone()].into_iter().chain(parameters));
        text.push('\n');
    }
    Ok(Judged {
        text: (!is_open).then_some(text),
        notes,
    })
}

/// The number of the disk, as the line begins.
fn number(target: &str, environment: &Environment) -> Result<String> {
    let hint = "measure a whole disk: iolab run limits-iocost /dev/DISK --destroy-data --change-system; --format limits has the numbers of any target";
    let refused = |why: String| Err(Error::usage(why).hint(hint));
    let device = environment.get(&KEYS.device).unwrap_or_default();
    let disk = environment.get(&KEYS.device_disk).unwrap_or_default();
    match environment.get(&KEYS.device_number) {
        None => refused(format!(
            "io.cost takes limits of disks by number, and {target} has none"
        )),
        Some(_) if device != disk => refused(format!(
            "io.cost takes limits of whole disks, and {device} is a partition of {disk}"
        )),
        Some(_) if environment.get(&KEYS.device_queues).unwrap_or(0) == 0 => refused(format!(
            "io.cost controls request queues, and {disk} has none"
        )),
        Some(number) => Ok(number),
    }
}

/// Whether requests reach the device as they are issued.
fn passes_requests_on(system: &SystemSettings) -> bool {
    system.get(SystemSetting::Scheduler) == Some("none")
        && matches!(system.get(SystemSetting::NoMerges), Some("1" | "2"))
}

/// A note on the share of the disk that was measured, if it is small.
fn share(disk: &Storage<'_>) -> Option<String> {
    let all = disk.environment.get(&KEYS.device_bytes)?;
    let regions = disk.cells.iter().map(|(_, cell)| cell.cell.trial().region);
    let used = regions.max()?;
    (used < all / 2).then(|| {
        format!(
            "{}: measured on {} of {}; --size 100% measures the whole disk",
            disk.name,
            format_bytes(used as f64),
            format_bytes(all as f64)
        )
    })
}

/// I/O size of the rates, bytes.
const RATE_BS: u64 = 1 << 20;
/// Least sector, bytes: the size of random I/O where a device names none.
const SECTOR: u64 = 512;

/// Requests in flight of a rate, at least and at most: a multiple of the least for an array.
const RATE_DEPTH: (u32, u32) = (4, u32::MAX);

/// The four properties, in their order in an entry, with random I/O of this size.
const fn seastar_points(bs: u64) -> [Point; 4] {
    [
        iops("read_iops", WorkloadCode::RR, bs, 32, 4),
        rate("read_bandwidth", WorkloadCode::RS, RATE_BS, RATE_DEPTH),
        iops("write_iops", WorkloadCode::WR, bs, 32, 4),
        rate("write_bandwidth", WorkloadCode::WS, RATE_BS, RATE_DEPTH),
    ]
}

/// The entries of all mount points in `io_properties.yaml` of Seastar.
///
/// Source: `apps/iotune/iotune.cc` of Seastar.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a target without a mount point, or a point without a cell.
fn seastar_properties(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut text, mut notes, mut is_open) = ("disks:\n".to_owned(), Vec::new(), false);
    for storage in storages(runs, mount_point)? {
        let points = seastar_points(random_bs(&storage));
        let mut measured = Measured::of(runs, &storage, &points, SEASTAR)?;
        let lengths = saturation_lengths(runs, &storage, &mut measured)?;
        is_open |= !measured.reasons.is_empty();
        notes.extend(measured.notes(&storage.name));
        let own = measured.limits.iter();
        let own = own.map(|limit| (limit.name, limit.value));
        // JSON's strings are YAML's.
        text += &format!("  - mountpoint: {}\n", serde_json::json!(storage.name));
        text.extend(
            own.chain(lengths)
                .map(|(name, value)| format!("    {name}: {value}\n")),
        );
    }
    Ok(Judged {
        text: (!is_open).then_some(text),
        notes,
    })
}

fn mount_point(target: &str, environment: &Environment) -> Result<String> {
    environment.get(&KEYS.mount_point).ok_or_else(|| {
        Error::usage(format!(
            "Seastar knows storage by its mount point, and {target} has none"
        ))
        .hint("measure a directory: iolab run limits-seastar DIR; --format limits has the numbers of any target")
    })
}

/// The size of random I/O: the disk's `minimum_io_size`, or what direct I/O allows.
fn random_bs(storage: &Storage<'_>) -> u64 {
    let facts = [
        &KEYS.device_minimum_io_bytes,
        &KEYS.direct_offset_alignment_bytes,
        &KEYS.model_block_bytes,
    ];
    let known = facts
        .into_iter()
        .filter_map(|key| storage.environment.get(key));
    known.fold(SECTOR, u64::max)
}

/// The smallest size of sequential reads and of writes, one in flight, from which on the rate stays within the margin of
/// the bandwidth. Empty unless smaller sizes were measured.
fn saturation_lengths(
    runs: &[AnalysedRun],
    storage: &Storage<'_>,
    measured: &mut Measured,
) -> Result<Vec<(&'static str, u64)>> {
    let mut lengths = Vec::new();
    for (name, bandwidth, workload) in [
        ("read_saturation_length", "read_bandwidth", WorkloadCode::RS),
        (
            "write_saturation_length",
            "write_bandwidth",
            WorkloadCode::WS,
        ),
    ] {
        let of = measured.limits.iter().find(|limit| limit.name == bandwidth);
        let Some(full) = of.map(|limit| (1.0 - MARGIN) * limit.value as f64) else {
            continue;
        };
        let mut one_by_one = Measured::default();
        let (mut length, mut bs) = (RATE_BS, RATE_BS / 2);
        let at = |bs| rate(name, workload, bs, (1, 1));
        while let Some(cell) = at(bs).cell(storage)? {
            let limit = one_by_one.add(runs, &at(bs), cell);
            if limit.is_none_or(|limit| (limit.value as f64) < full) {
                break;
            }
            (length, bs) = (bs, bs / 2);
        }
        if !one_by_one.limits.is_empty() {
            lengths.push((name, length));
        }
        measured.reasons.append(&mut one_by_one.reasons);
    }
    Ok(lengths)
}
