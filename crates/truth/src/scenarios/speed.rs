//! A file system in user space with known speed.

use std::time::Duration;

use super::{Expect, Scenario};
use crate::files::MIB;
use crate::fuse::{Behaviour, RequestContext};
use crate::scene::Scene;
use crate::system::Made;
use crate::workload::Workload;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Cost of the round trip to user space.
pub const USER_SPACE: Scenario = Scenario {
    name: "FUSE, direct reads",
    truth: "a process answers at once from its memory, which the kernel cannot know",
    build: || Scene::on_fuse(Behaviour::default()),
    workload: Workload::LATENCY,
    expect: Expect::UNKNOWN,
};

/// Buffered reads with an empty page cache, and yet without a disk.
pub const USER_SPACE_BUFFERED: Scenario = Scenario {
    name: "FUSE, cold cache",
    truth: "a process answers from its memory; the page cache held nothing",
    build: || {
        Scene::on_fuse(Behaviour {
            cached: true,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        cache: "cold",
        once: true,
        time_ms: 5000,
        ..Workload::READ
    },
    expect: Expect::UNKNOWN,
};

/// Time for which [`DELAYED`] holds each request.
pub const DELAY: Duration = ms(10);

/// Requests that all take the same known time.
pub const DELAYED: Scenario = Scenario {
    name: "FUSE, each request held for 10 ms",
    truth: "median latency 10 ms, and the round trip to user space",
    build: || {
        Scene::on_fuse(Behaviour {
            delay: |_| DELAY,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        time_ms: 1000,
        ..Workload::LATENCY
    },
    expect: Expect::UNKNOWN,
};

/// Four workers on a file system that serves one request at a time.
pub const SERIAL: Scenario = Scenario {
    name: "FUSE, one request at a time, 1 and 4 threads",
    truth: "1 ms each, one after the other: 4 threads wait 4 ms, 1 is being served",
    build: || {
        Scene::on_fuse(Behaviour {
            delay: |_| ms(1),
            serial: true,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        random: true,
        threads: 4,
        alone_too: true,
        time_ms: 300,
        ..Workload::LATENCY
    },
    expect: Expect {
        says: &["4 requests in flight give"],
        ..Expect::UNKNOWN
    },
};

/// Requests that are slower from the middle of the run on.
pub const STEP: Scenario = Scenario {
    name: "FUSE, a quarter as fast from the middle of the run on",
    truth: "2 ms in the first trials, 8 ms in the others",
    build: || {
        let delay = |context: RequestContext| ms(if context.open < 11 { 2 } else { 8 });
        Scene::on_fuse(Behaviour {
            delay,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        trials: 20,
        time_ms: 200,
        ..Workload::LATENCY
    },
    expect: Expect {
        says: &["trials form two groups"],
        ..Expect::UNKNOWN
    },
};

/// Bytes after which [`SLOWS`] is slow.
pub const SWIFT: u64 = 48 * MIB;

/// Writes that are slower after a number of bytes, at whatever time.
pub const SLOWS: Scenario = Scenario {
    name: "FUSE, a quarter as fast after 48 MiB written",
    truth: "each write takes 2 ms until 48 MiB are written, 8 ms then",
    build: || {
        let delay = |context: RequestContext| ms(if context.written < SWIFT { 2 } else { 8 });
        Scene::on_fuse(Behaviour {
            delay,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        sync: "end",
        trials: 20,
        time_ms: 200,
        ..Workload::WRITE
    },
    expect: Expect {
        says: &["fell to"],
        ..Expect::UNKNOWN
    },
};

/// Requests that are slightly slower with every trial.
pub const DRIFT: Scenario = Scenario {
    name: "FUSE, slower by 4 % of the first with each trial",
    truth: "2 ms at first, 3.6 ms at last",
    build: || {
        let delay = |context: RequestContext| Duration::from_micros(2000 + 80 * context.open);
        Scene::on_fuse(Behaviour {
            delay,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        trials: 20,
        time_ms: 100,
        ..Workload::LATENCY
    },
    expect: Expect {
        says: &["drift with time"],
        ..Expect::UNKNOWN
    },
};

/// Two speeds that alternate at random.
pub const TWO_MODES: Scenario = Scenario {
    name: "FUSE, two speeds in turn by chance",
    truth: "each trial runs at 2 ms or at 8 ms",
    build: || {
        // One bit per trial, drawn once: half of them slow, at random.
        const SLOW: u64 = 0b1_0110_0011_1010_0100_1101_0010;
        let delay = |context: RequestContext| ms(2 + 6 * (SLOW >> (context.open % 25) & 1));
        Scene::on_fuse(Behaviour {
            delay,
            ..Behaviour::default()
        })
    },
    workload: Workload {
        trials: 24,
        time_ms: 200,
        ..Workload::LATENCY
    },
    expect: Expect {
        says: &["trials form two groups"],
        ..Expect::UNKNOWN
    },
};

/// Length of the stall in each trial.
pub const STALL: Duration = ms(2000);

fn stalling() -> Made<Scene> {
    let delay = |context: RequestContext| {
        if context.request == 200 {
            STALL
        } else {
            Duration::ZERO
        }
    };
    Scene::on_fuse(Behaviour {
        delay,
        ..Behaviour::default()
    })
}

/// One request after another: a stall is one slow request among many.
pub const STALL_CLOSED: Scenario = Scenario {
    name: "FUSE, stalls once for 2 s, closed loop",
    truth: "nothing is answered for 2 s; every request that came in them would have waited",
    build: stalling,
    workload: Workload {
        trials: 3,
        time_ms: 3500,
        ..Workload::LATENCY
    },
    expect: Expect {
        flags: &["few trials"],
        says: &["one request at a time"],
        ..Expect::UNKNOWN
    },
};

/// Requests on a schedule: many requests wait for the end of a stall.
pub const STALL_OPEN: Scenario = Scenario {
    name: "FUSE, stalls once for 2 s, 200 requests/s",
    truth: "the 400 requests that come in the 2 s wait: more than half of all in the trial",
    build: stalling,
    workload: Workload {
        trials: 3,
        time_ms: 3500,
        rate: Some(200),
        ..Workload::LATENCY
    },
    expect: Expect {
        flags: &["few trials"],
        says: &["time from the scheduled start"],
        ..Expect::UNKNOWN
    },
};
