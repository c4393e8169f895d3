//! Checks a definition against a trace of the real drive: `check DEFINITION.toml TRACE`.

use std::error::Error;
use std::io::Write;

use iolab_model::{Definition, check};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [definition, trace] = &words[..] else {
        return Err("usage: check DEFINITION.toml TRACE".into());
    };
    let definition = Definition::parse(&std::fs::read_to_string(definition)?)?;
    let trace = check::parse_trace(&std::fs::read_to_string(trace)?)?;
    let found = check::check(&definition, &trace)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", definition.title)?;
    if found.outside > 0 {
        writeln!(out, "{} requests lie outside the model", found.outside)?;
    }
    writeln!(
        out,
        "ms                 requests  measured  modelled      rms   median      p95"
    )?;
    for group in &found.groups {
        writeln!(
            out,
            "{:18} {:8} {:9.3} {:9.3} {:8.4} {:8.3} {:8.3}",
            group.group,
            group.requests,
            group.measured_mean,
            group.modelled_mean,
            group.rms,
            group.median,
            group.p95
        )?;
    }
    Ok(())
}
