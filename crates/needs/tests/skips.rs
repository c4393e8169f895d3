//! Lists the skips of this `cargo test`. Cargo runs it last, because of the name of its package.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without a harness"
)]

use std::process::ExitCode;

use needs::ledger::{Ledger, Skip};
use needs::{Required, VARIABLE};

fn main() -> ExitCode {
    // Test runners ask this of every test program.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    match listed() {
        Ok(code) => code,
        Err(why) => {
            eprintln!("the skips cannot be listed: {why}");
            ExitCode::FAILURE
        }
    }
}

fn listed() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let skips = Ledger::of_this_cargo()?.take()?;
    Ledger::tidy()?;
    println!("\n{}", count(skips.len()));
    let mut need = None;
    for skip in &skips {
        if need.replace(skip.need) != Some(skip.need) {
            println!("  {}: {}", skip.need, skip.need.what());
        }
        let Skip { test, reason, .. } = skip;
        println!("    {test}: {reason}");
    }
    if !skips.is_empty() {
        println!("{VARIABLE}=NAME,... turns a skip for one of these needs into a failure.");
    }
    // Fails on unknown names, which would require nothing.
    let required = Required::by_environment().map_err(|unknown| unknown.to_string())?;
    let demanded = skips.iter().any(|skip| required.has(skip.need));
    Ok(ExitCode::from(u8::from(demanded)))
}

fn count(number: usize) -> String {
    match number {
        1 => "1 skipped:".to_owned(),
        0 => "0 skipped".to_owned(),
        _ => format!("{number} skipped:"),
    }
}
