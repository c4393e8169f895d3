//! A file system in user space that silently loses or changes data.

use super::{Expect, Scenario};
use crate::files::MIB;
use crate::fuse::{Behaviour, WriteFault};
use crate::scene::Scene;
use crate::workload::Workload;

/// Sequential writes that are read back, one pass per trial.
const VERIFIED: Workload = Workload {
    verify: true,
    once: true,
    region: "4M",
    time_ms: 60_000,
    ..Workload::WRITE
};

/// A run that ends with the first trial whose data is not as written.
const FOUND: Expect = Expect {
    code: 1,
    served_by: &[],
    flags: &["verify failed", "errors", "few trials"],
    says: &[],
};

/// All writes are stored.
pub const KEEPS: Scenario = Scenario {
    name: "FUSE, verified writes",
    truth: "every write is kept where it belongs",
    build: || Scene::on_fuse(Behaviour::default()),
    workload: VERIFIED,
    expect: Expect {
        says: &["that was read back is correct"],
        ..Expect::UNKNOWN
    },
};

/// One byte is stored wrong.
pub const CORRUPTS: Scenario = Scenario {
    name: "FUSE that changes byte 1,048,600, verified writes",
    truth: "one byte is not as it was written",
    build: || harms(WriteFault::Change(MIB + 24)),
    workload: VERIFIED,
    expect: Expect {
        says: &[
            "1 corrupted", "the first at byte 1048576", "checksum is wrong",
        ],
        ..FOUND
    },
};

/// One write overwrites the one before it.
pub const MISPLACES: Scenario = Scenario {
    name: "FUSE that puts one write 64 KiB before its place, verified writes",
    truth: "one block lies where another belongs, whose own place holds what was there before",
    build: || {
        harms(WriteFault::Shift {
            at: MIB,
            back: 64 << 10,
        })
    },
    workload: VERIFIED,
    expect: Expect {
        says: &[
            "1 misplaced",
            "the first at byte 983040 (misplaced)",
            "holds what was written for byte 1048576",
        ],
        ..FOUND
    },
};

/// One write of the second trial is never stored.
pub const DROPS: Scenario = Scenario {
    name: "FUSE that drops one write, verified writes",
    truth: "one block still holds what the trial before wrote",
    build: || harms(WriteFault::DropLater(MIB)),
    workload: VERIFIED,
    expect: Expect {
        says: &[
            "1 stale",
            "the first at byte 1048576 (stale)",
            "holds what an earlier trial or run wrote",
        ],
        ..FOUND
    },
};

/// One write of the first trial is never stored.
pub const LOSES: Scenario = Scenario {
    name: "FUSE that never stores one block, verified writes",
    truth: "one block holds what was there before iolab came",
    build: || harms(WriteFault::Drop(MIB)),
    workload: VERIFIED,
    expect: Expect {
        says: &["1 lost", "the first at byte 1048576 (lost)"],
        ..FOUND
    },
};

/// One write is stored only by half.
pub const TEARS: Scenario = Scenario {
    name: "FUSE that stores half of one write, verified writes",
    truth: "the first half of one block is new, the second old",
    build: || harms(WriteFault::Half(MIB)),
    workload: VERIFIED,
    expect: Expect {
        says: &["1 torn", "the first at byte 1081344 (torn)"],
        ..FOUND
    },
};

/// One byte is stored wrong, without verification.
pub const CORRUPTS_UNSEEN: Scenario = Scenario {
    name: "FUSE that changes byte 1,048,600, writes that are not verified",
    truth: "one byte is not as it was written",
    build: || harms(WriteFault::Change(MIB + 24)),
    workload: Workload {
        verify: false,
        ..VERIFIED
    },
    expect: Expect::UNKNOWN,
};

fn harms(harm: WriteFault) -> crate::Made<Scene> {
    Scene::on_fuse(Behaviour {
        harm: Some(harm),
        ..Behaviour::default()
    })
}
