//! Settings: programs and other tools to measure.

use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Programs:
    { name: "linkage", kind: Word, exported: false,
      doc: "time iolab's small reader as a whole program, linked static or dynamic; none for no program",
      word_or_none: linkage }
    { name: "command", kind: Word, exported: true,
      doc: "time your own program; iolab fills in {file}, {size} and {bs}; none for no program",
      word_or_none: command }
    { name: "tool", aliases: ["peer"], kind: Word, exported: true,
      doc: "tool that measures the cell: iolab, or an installed peer such as fio with equivalent options",
      word: tool }
};
