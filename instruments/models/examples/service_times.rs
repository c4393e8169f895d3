//! Replays the requests of a measured drive on a model, as `service_times DEFINITION.toml TRACE`. Prints for
//! each request the service time of the drive and of the model in µs. The use of the drive's buffer and of the
//! model's follows.
//!
//! A line of the trace has the direction (`R`, `W`), the use of the drive's buffer, first block, and number of
//! blocks. The service time follows, and the time from the end of the request to the next one, both in µs. One
//! request is outstanding at a time.

use std::error::Error;
use std::io::Write;

use iolab_models::definition::Definition;
use iolab_models::{build, serve};
use iolab_workload::virtual_disk::{Model, Ns, Op, Request, ServedFrom};

/// A request with the service time of the drive and of the model, ns.
pub(crate) struct Replayed<'a> {
    /// Note of the trace about the buffer of the drive.
    pub(crate) buffer: &'a str,
    /// Service time of the drive, ns.
    pub(crate) measured: Ns,
    /// Service time of the model, ns.
    pub(crate) modelled: Ns,
    /// How the model served it.
    pub(crate) served: ServedFrom,
}

/// Replays a trace on a model whose blocks have `block` bytes; `None` for a line that is not a request.
pub(crate) fn replay<'a>(
    mut model: Box<dyn Model>,
    block: u64,
    trace: &'a str,
) -> impl Iterator<Item = Option<Replayed<'a>>> {
    let mut now = 0;
    trace.lines().map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [op, buffer, first, blocks, service, gap] = words[..] else {
            return None;
        };
        let ns = |us: &str| Some((us.parse::<f64>().ok()? * 1e3).round() as Ns);
        let request = Request {
            op: if op == "R" { Op::Read } else { Op::Write },
            offset: first.parse::<u64>().ok()? * block,
            len: blocks.parse::<u64>().ok()? * block,
        };
        let completion = serve(&mut *model, now, &request);
        let modelled = completion.finished - now;
        now = completion.finished + ns(gap)?;
        Some(Replayed {
            buffer,
            measured: ns(service)?,
            modelled,
            served: completion.served,
        })
    })
}

#[allow(dead_code, reason = "a test takes the replay from here")]
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [definition, trace] = &words[..] else {
        return Err("usage: service_times DEFINITION.toml TRACE".into());
    };
    let definition = Definition::parse(&std::fs::read_to_string(definition)?)?;
    let trace = std::fs::read_to_string(trace)?;
    let replayed = replay(build(&definition, 0)?, definition.block(), &trace);
    for (number, one) in (1..).zip(replayed) {
        let one = one.ok_or_else(|| format!("line {number} is not a request"))?;
        let [measured, modelled] = [one.measured, one.modelled].map(|ns| ns as f64 / 1e3);
        writeln!(
            std::io::stdout(),
            "{measured:.1}\t{modelled:.1}\t{}\t{:?}",
            one.buffer,
            one.served
        )?;
    }
    Ok(())
}
