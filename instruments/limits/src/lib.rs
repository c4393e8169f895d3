//! iolab-limits: limits of storage in the formats of programs that take them.
//!
//! Files to begin with: `limit.rs` finds and judges the cells, `iocost.rs` and `seastar.rs` write them, `lib.rs` as JSON.

mod iocost;
mod limit;
mod seastar;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_command::lists::Lists;
use iolab_report::document::Document;
use iolab_report::export::{ExportFormat, Judged, Writer};
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

use limit::{Limit, Measured, storages};

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
        writer: Writer::Judged(iocost::lines),
    },
    ExportFormat {
        name: "seastar",
        words: "io_properties.yaml of Seastar (ScyllaDB, Redpanda), from a run of limits-seastar",
        extensions: &["yaml", "yml"],
        writer: Writer::Judged(seastar::properties),
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
        let random = seastar::random_bs(&storage);
        for (format, points, experiment) in [
            ("iocost", &iocost::POINTS[..], iocost::EXPERIMENT),
            ("seastar", &seastar::points(random)[..], seastar::EXPERIMENT),
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
