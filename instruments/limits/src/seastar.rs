//! `io_properties.yaml` of Seastar: an entry a mount point.
//!
//! Source: `apps/iotune/iotune.cc` of Seastar.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::MARGIN;
use iolab_record::environment::{Environment, KEYS};
use iolab_report::export::Judged;
use iolab_workload::trial::WorkloadCode;
use iolab_workload::{Error, Result};

use crate::limit::{Measured, Point, Storage, storages};

/// The experiment with these points.
pub(crate) const EXPERIMENT: &str = "limits-seastar";

/// I/O size of the rates, bytes.
const RATE_BS: u64 = 1 << 20;
/// Least sector, bytes: the size of random I/O where a device names none.
const SECTOR: u64 = 512;

/// Requests in flight of a rate, at least and at most: a multiple of the least for an array.
const RATE_DEPTH: (u32, u32) = (4, u32::MAX);

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

const fn iops(name: &'static str, workload: WorkloadCode, bs: u64) -> Point {
    Point {
        name,
        is_rate: false,
        workload,
        bs,
        depth: (32, 32),
        threads: 4,
    }
}

/// The four properties, in their order in an entry, with random I/O of this size.
pub(crate) const fn points(bs: u64) -> [Point; 4] {
    [
        iops("read_iops", WorkloadCode::RR, bs),
        rate("read_bandwidth", WorkloadCode::RS, RATE_BS, RATE_DEPTH),
        iops("write_iops", WorkloadCode::WR, bs),
        rate("write_bandwidth", WorkloadCode::WS, RATE_BS, RATE_DEPTH),
    ]
}

/// The entries of all mount points.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a target without a mount point, or a point without a cell.
pub(crate) fn properties(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut text, mut notes, mut is_open) = ("disks:\n".to_owned(), Vec::new(), false);
    for storage in storages(runs, mount_point)? {
        let points = points(random_bs(&storage));
        let mut measured = Measured::of(runs, &storage, &points, EXPERIMENT)?;
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
pub(crate) fn random_bs(storage: &Storage<'_>) -> u64 {
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
