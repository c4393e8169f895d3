//! iolab-limits: limits of storage in the formats of programs that take them.
//!
//! Files to begin with: `limit.rs` finds and judges the cells, `iocost.rs` and `seastar.rs` write them.

mod document;
mod iocost;
mod limit;
mod seastar;

use iolab_command::lists::Lists;
use iolab_report::document::Document;
use iolab_report::export::{ExportFormat, Writer};

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        documents: vec![Document::of::<Vec<document::LimitRow>>(
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
        writer: Writer::Judged(document::rows),
    },
];
