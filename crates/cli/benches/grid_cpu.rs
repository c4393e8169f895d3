//! CPU time per request in the disk grid: iolab's beside that of the installed fio and IOzone, cell by cell, in one run.
//!
//! `cargo bench -p iolab` prints a line per cell and fails when iolab needs more than a peer: in user mode where one thread does
//! all, and altogether everywhere, where the kernel's share, which is the same for all tools, leaves a difference of a few percent
//! to chance. The kernel splits the time of a thread into user and system by the ticks it has seen, and calls all of it user time
//! where it has seen none; of 48 threads that each ran for milliseconds only the sum is to be trusted. A peer that is not installed
//! is told, and skipped. fio's CPU is that of its workers; IOzone tells none, so that of the whole program counts, its start and
//! the filling of its buffers among it.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What is run: direct requests of the grid's smallest size, where a tool's own share of the time is the greatest. Random writes
/// are left out: what IOzone uses for them cannot be told from what it does before.
const GRID: [&str; 16] = [
    "run",
    "disk-grid",
    "--size=192M",
    "--threads=1,8,48",
    "--time=none",
    "--budget=2min",
    "--peer=fio",
    "--peer=iozone",
    "--set=workload=RR,WS",
    "--set=bs=4k",
    "--set=bytes=none",
    "--set=layout=private",
    "--set=content=repeated",
    "--set=trials_min=2",
    "--seed=1",
    "-o",
];

/// By how much iolab's CPU time altogether may lie above a peer's by chance.
const SLACK: f64 = 1.05;

/// Workload, number of threads, tool.
type Place = (String, u64, String);

/// CPU time of all trials of a cell, warm-ups among them: the kernel counts it in ticks, too coarse for one trial.
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

    fn all_us(&self) -> f64 {
        (self.user_ns + self.system_ns) as f64 / 1e3 / self.requests.max(1) as f64
    }
}

fn main() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tempfile::tempdir_in(directory).expect("a folder for the scratch files");
    let file = folder.path().join("grid.iolab");
    iolab(&mut |command| command.args(GRID).arg(&file).arg(folder.path()));
    let samples = iolab(&mut |command| command.args(["export", "--format=json"]).arg(&file));
    let samples: Vec<Value> = serde_json::from_slice(&samples).expect("an array of samples");
    let cells = used(&samples);
    let missed = compare(&cells);
    if missed > 0 {
        println!("{missed} goals missed");
        std::process::exit(1);
    }
    println!("no goal missed");
}

/// What iolab prints when it is called like this.
fn iolab(arguments: &mut dyn FnMut(&mut Command) -> &mut Command) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    let ran = arguments(&mut command).output().expect("iolab starts");
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{words}");
    ran.stdout
}

fn used(samples: &[Value]) -> BTreeMap<Place, Used> {
    let mut cells: BTreeMap<Place, Used> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample["ok"] == true) {
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

/// Prints a line for each cell of each tool, and counts those in which iolab needs more than a peer.
fn compare(cells: &BTreeMap<Place, Used>) -> usize {
    let mut missed = 0;
    for peer in ["fio", "iozone"] {
        if !cells.keys().any(|(.., tool)| tool == peer) {
            println!("skipped: {peer} is not installed, or its trials failed");
        }
    }
    for ((workload, threads, tool), cell) in cells {
        let own = cells.get(&(workload.clone(), *threads, "iolab".to_owned()));
        let ratio = |of: fn(&Used) -> f64| own.map_or(f64::NAN, |own| of(cell) / of(own));
        let (user, all) = (ratio(Used::user_us), ratio(Used::all_us));
        let met = all * SLACK > 1.0 && (*threads > 1 || user > 1.0);
        let goal = match tool.as_str() {
            "iolab" => String::new(),
            _ if met => format!(", {all:.2} ({user:.1}) times iolab's: met"),
            _ => {
                missed += 1;
                format!(", {all:.2} ({user:.1}) times iolab's: MISSED")
            }
        };
        println!(
            "{workload} {threads:>2} threads, {tool:<6} {:>5.1} us CPU per I/O (user {:>5.2} us){goal}",
            cell.all_us(),
            cell.user_us(),
        );
    }
    missed
}
