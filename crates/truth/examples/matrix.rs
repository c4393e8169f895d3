//! Writes the truth table as CSV: results of fio, IOzone and iolab for every target. `matrix.csv` in the same
//! folder holds the rows of one idle virtual machine with two CPUs, fio 3.33 and IOzone 3.489.
//!
//! `cargo run --release -p iolab-truth --example matrix > matrix.csv`, as root for all rows. An argument
//! chooses the rows whose name contains it.

#![allow(clippy::print_stdout, reason = "this is what the program is for")]

use iolab_truth::iolab::{Seen, measure};
use iolab_truth::scenarios::{ALL, MACHINE};
use iolab_truth::system::warn;
use iolab_truth::workload::Workload;
use iolab_truth::{Scenario, Scene, reference_tools};

fn main() {
    println!("scenario,the truth,fio,IOzone,iolab");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for scenario in ALL.iter().filter(|row| row.name.contains(&wanted)) {
        warn(scenario.name);
        let [fio, iozone, iolab] = cells(scenario);
        let row = [scenario.name, scenario.truth, &*fio, &*iozone, &*iolab].map(field);
        println!("{}", row.join(","));
    }
}

/// A text as a field of CSV.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Results of the three tools. Each gets a target of its own, so that none finds another's traces.
fn cells(scenario: &Scenario) -> [String; 3] {
    let of = |ask: &dyn Fn(&Scene) -> String| match (scenario.build)() {
        Ok(scene) => {
            let target = scene.target.display().to_string();
            ask(&scene).replace(&target, "TARGET")
        }
        Err(why) => format!("({why})"),
    };
    let rival = |tool: fn(&Scene, &Workload) -> String| {
        of(&|scene| {
            if let Some(turn) = &scene.turn {
                // Other tools have no trials: the change happens before they start.
                turn.happen().expect("what is to happen can");
            }
            tool(scene, &scenario.workload)
        })
    };
    [
        rival(reference_tools::fio),
        rival(reference_tools::iozone),
        of(&|scene| said(scenario, &measure(scene, &scenario.workload))),
    ]
}

/// Numbers, verdict, flags and required phrases of a run of iolab, in one line.
fn said(scenario: &Scenario, seen: &Seen) -> String {
    let mut parts = Vec::new();
    if seen.code == Some(0) {
        parts.push(reference_tools::throughput(
            seen.number("throughput_mb_s_median"),
        ));
        parts.push(reference_tools::latency(
            seen.number("latency_p50_ns_median"),
            seen.number("latency_p99_ns_median"),
        ));
        parts.push(seen.served_by().to_owned());
    } else {
        let mut lines = seen.text.lines();
        let error = lines.find_map(|line| line.strip_prefix("error: "));
        parts.push(format!("error: {}", error.unwrap_or("none")));
    }
    // Flags about the machine are left out, unless the scenario is about them.
    let of_target =
        |flag: &&&str| scenario.expect.flags.contains(*flag) || !MACHINE.contains(*flag);
    let flags = seen.flags();
    let flags = flags.iter().filter(of_target);
    parts.extend(flags.map(|flag| (*flag).to_owned()));
    let told = scenario.expect.says.iter();
    let beyond = told.filter(|words| seen.says(words) && !parts[0].contains(**words));
    let beyond: Vec<String> = beyond.map(|words| format!("\"{words}\"")).collect();
    parts.extend(beyond);
    parts.join(", ")
}
