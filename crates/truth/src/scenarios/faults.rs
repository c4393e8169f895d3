//! A file system in user space that does not do as requested.

use super::{Expect, Scenario};
use crate::files::MIB;
use crate::fuse::Behaviour;
use crate::scene::Scene;
use crate::workload::Workload;

/// Every third read returns half of the requested bytes.
pub const SHORT: Scenario = Scenario {
    name: "FUSE, every third read cut short",
    truth: "a third of the reads gives half of the bytes",
    build: || {
        Scene::on_fuse(Behaviour {
            cut_every: Some(3),
            ..Behaviour::default()
        })
    },
    workload: Workload::READ,
    expect: Expect {
        flags: &["short transfers"],
        ..Expect::UNKNOWN
    },
};

/// Changes of size have no effect.
pub const FROZEN: Scenario = Scenario {
    name: "FUSE, 4 KiB whatever the I/O size",
    truth: "each read gives 4 KiB, though 64 KiB are asked for",
    build: || {
        Scene::on_fuse(Behaviour {
            answer_most: Some(4096),
            ..Behaviour::default()
        })
    },
    workload: Workload::READ,
    expect: Expect {
        flags: &["short transfers"],
        ..Expect::UNKNOWN
    },
};

/// A place that cannot be read.
pub const FAILS_AT: Scenario = Scenario {
    name: "FUSE, EIO at byte 1,048,576",
    truth: "reads work up to there and fail there",
    build: || {
        Scene::on_fuse(Behaviour {
            fail_at: Some(MIB),
            ..Behaviour::default()
        })
    },
    workload: Workload::READ,
    expect: Expect {
        code: 1,
        served_by: &[],
        flags: &["errors", "few trials"],
        says: &["offset 1048576", "Input/output error"],
    },
};

/// No space after a while.
pub const FULL: Scenario = Scenario {
    name: "FUSE, ENOSPC after 1 MiB",
    truth: "writes work for 1 MiB and fail then",
    build: || {
        Scene::on_fuse(Behaviour {
            full_after: Some(MIB),
            ..Behaviour::default()
        })
    },
    workload: Workload::WRITE,
    expect: Expect {
        code: 1,
        served_by: &[],
        flags: &["errors", "few trials"],
        says: &["offset 1048576", "No space left"],
    },
};

/// Data written but not synced.
pub const FORGETS: Scenario = Scenario {
    name: "FUSE that loses writes until fsync, no sync",
    truth: "nothing that was written outlives a crash",
    build: || {
        Scene::on_fuse(Behaviour {
            volatile: true,
            ..Behaviour::default()
        })
    },
    workload: Workload::WRITE,
    expect: Expect {
        says: &["wrote without a sync"],
        ..Expect::UNKNOWN
    },
};

/// Data written and synced.
pub const FORGETS_SYNCED: Scenario = Scenario {
    name: "FUSE that loses writes until fsync, sync at the end",
    truth: "what was written outlives a crash",
    build: || {
        Scene::on_fuse(Behaviour {
            volatile: true,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        sync: "end",
        ..Workload::WRITE
    },
    expect: Expect::UNKNOWN,
};
