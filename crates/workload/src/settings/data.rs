//! Settings: written data.

use super::values::{put_flag, put_percent};
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Data:
    { name: "compressible", aliases: ["buffer_compress_percentage"], kind: Count, unit: "percent", exported: true,
      doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
      value: trial.compressible, put_percent }
    { name: "verify", kind: Flag, exported: true,
      doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
      value: trial.verify, put_flag }
};
