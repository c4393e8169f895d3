//! CPU time per request in the disk grid: iolab compared with the installed fio and IOzone, cell by cell, in one
//! run.
//!
//! `cargo bench -p iolab` prints a line per cell, and fails if iolab needs more time in user mode than a peer.
//! User mode is the tool's own work. Time in the kernel is only reported: it is the same for all tools, and its
//! scatter exceeds the differences between them.
//!
//! Each trial is a whole pass, so that every thread runs for many ticks. The kernel divides the time of a thread
//! by the ticks that it has seen, and counts all of it as user time without a tick. A peer that is not installed
//! is reported and skipped. For fio, the CPU time of its workers counts. IOzone does not report any, so its
//! whole program counts, including its start and the filling of its buffers.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The measured cells: direct requests of the grid's smallest size, in which a tool's own share of the time is
/// greatest. Random writes are left out, because IOzone's CPU time for them includes earlier phases.
const GRID: [&str; 15] = [
    "run", "disk-grid", "--size=96M", "--threads=1,8,48", "--time=none", "--budget=5min",
    "--peer=fio", "--peer=iozone", "--set=workload=RR,WS", "--set=bs=4k", "--set=bytes=none",
    "--set=layout=private", "--set=trials_min=4", "--seed=1", "-o",
];

const IOLAB: &str = env!("CARGO_BIN_EXE_iolab");

/// Workload, number of threads and tool of a cell.
type GridCell = (String, u64, String);

/// CPU time of the measured trials of a cell: the kernel counts it in ticks, too coarse for one trial.
#[derive(Default)]
struct Used {
    user_ns: u64,
    system_ns: u64,
    requests: u64,
}

impl Used {
    fn user_us(&self) -> f64 {
        self.user_ns as f64 / 1e3 / self.requests.max(1) as f64
    }

    fn system_us(&self) -> f64 {
        self.system_ns as f64 / 1e3 / self.requests.max(1) as f64
    }
}

fn main() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tempfile::tempdir_in(directory).expect("a folder for the scratch files");
    let file = folder.path().join("grid.iolab");
    iolab(Command::new(IOLAB).args(GRID).arg(&file).arg(folder.path()));
    let samples = iolab(
        Command::new(IOLAB)
            .args(["export", "--format=json"])
            .arg(&file),
    );
    let samples: Vec<Value> = serde_json::from_slice(&samples).expect("an array of samples");
    let cells = used(&samples);
    let missed = compare(&cells);
    if missed > 0 {
        println!("{missed} goals missed");
        std::process::exit(1);
    }
    println!("no goal missed");
}

/// The output of an iolab command, which must succeed.
fn iolab(command: &mut Command) -> Vec<u8> {
    let ran = command.output().expect("iolab starts");
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{words}");
    ran.stdout
}

fn used(samples: &[Value]) -> BTreeMap<GridCell, Used> {
    let mut cells: BTreeMap<GridCell, Used> = BTreeMap::new();
    for sample in samples
        .iter()
        .filter(|s| s["ok"] == true && s["warmup"] == false)
    {
        let text = |name: &str| sample[name].as_str().unwrap_or("?").to_owned();
        let number = |name: &str| sample[name].as_u64().unwrap_or(0);
        let place = (text("level_workload"), number("threads"), text("tool"));
        let cell = cells.entry(place).or_default();
        cell.user_ns += number("user_ns");
        cell.system_ns += number("system_ns");
        cell.requests += number("read_requests") + number("write_requests");
    }
    cells
}

/// Prints a line for each cell of each tool; returns the number of cells in which iolab needs more than a peer.
fn compare(cells: &BTreeMap<GridCell, Used>) -> usize {
    let mut missed = 0;
    for peer in ["fio", "iozone"] {
        if !cells.keys().any(|(.., tool)| tool == peer) {
            println!("skipped: {peer} is not installed, or its trials failed");
        }
    }
    for ((workload, threads, tool), cell) in cells {
        let own = cells.get(&(workload.clone(), *threads, "iolab".to_owned()));
        let user = own.map_or(f64::NAN, |own| cell.user_us() / own.user_us());
        let goal = match tool.as_str() {
            "iolab" => String::new(),
            _ if user > 1.0 => format!(", {user:.1} times iolab's: met"),
            _ => {
                missed += 1;
                format!(", {user:.2} times iolab's: MISSED")
            }
        };
        println!(
            "{workload} {threads:>2} threads, {tool:<6} {:>5.2} us user CPU per I/O (kernel {:>5.1} us){goal}",
            cell.user_us(),
            cell.system_us(),
        );
    }
    missed
}
