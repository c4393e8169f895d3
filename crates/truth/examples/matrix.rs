//! Writes the truth table as Markdown: what fio, IOzone and iolab say of every target.
//!
//! `cargo run -p iolab-truth --example matrix > table.md`, as root for all rows.

#![allow(clippy::print_stdout, reason = "this is what the program is for")]

use iolab_truth::iolab::{Seen, measure};
use iolab_truth::scenarios::ALL;
use iolab_truth::system::warn;
use iolab_truth::workload::Workload;
use iolab_truth::{Scenario, Scene, rivals};

fn main() {
    println!("| scenario | the truth | fio | IOzone | iolab |");
    println!("|---|---|---|---|---|");
    for scenario in ALL {
        warn(scenario.name);
        println!(
            "| {} | {} | {} |",
            scenario.name,
            scenario.truth,
            cells(scenario).join(" | ")
        );
    }
}

/// Every tool gets a target of its own, so that none finds what another left.
fn cells(scenario: &Scenario) -> [String; 3] {
    let of = |ask: &dyn Fn(&Scene) -> String| match (scenario.build)() {
        Ok(scene) => ask(&scene).replace('|', "/"),
        Err(why) => format!("({why})"),
    };
    let rival = |tool: fn(&Scene, &Workload) -> String| {
        of(&|scene| {
            if let Some(turn) = &scene.turn {
                // Others know no trials: they meet it from the start.
                turn.happen().expect("what is to happen can");
            }
            tool(scene, &scenario.workload)
        })
    };
    [
        rival(rivals::fio),
        rival(rivals::iozone),
        of(&|scene| said(scenario, &measure(scene, &scenario.workload))),
    ]
}

/// What iolab says, in a line.
fn said(scenario: &Scenario, seen: &Seen) -> String {
    if seen.code != Some(0) {
        let error = seen
            .text
            .lines()
            .find_map(|line| line.strip_prefix("error: "));
        return format!("error: {}", error.unwrap_or("none"));
    }
    let mut parts = vec![
        format!("{:.1} MB/s", seen.number("throughput_mb_s_median")),
        format!("p50 {:.0} us", seen.number("latency_p50_ns_median") / 1e3),
        format!("p99 {:.0} us", seen.number("latency_p99_ns_median") / 1e3),
        format!("served by **{}**", seen.served_by()),
    ];
    parts.extend(seen.flags().iter().map(|flag| format!("**{flag}**")));
    let told = scenario
        .expect
        .says
        .iter()
        .filter(|words| seen.text.contains(**words));
    parts.extend(told.map(|words| format!("\"{words}\"")));
    parts.join(", ")
}
