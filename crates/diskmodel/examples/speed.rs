//! Requests that models compute per second of processor time: `speed [NAME...]`; all of the catalogue when no name is given.

use std::error::Error;
use std::io::Write;

use iolab_diskmodel::definition;
use iolab_diskmodel::{Model, Request, build};

/// Loads: name, whether offsets are random, and requests in flight.
const LOADS: [(&str, bool, u64); 3] = [
    ("sequential", false, 1),
    ("random", true, 1),
    ("random, 32 in flight", true, 32),
];

/// Processor time of this thread, in s; other work on the machine does not count.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns: u64 = text
        .split_whitespace()
        .next()
        .ok_or("/proc/thread-self/schedstat is empty")?
        .parse()?;
    Ok(ns as f64 / 1e9)
}

/// Serves `count` requests of 4 KiB, one write in four, and gives the seconds of virtual time that they took.
fn serve(model: &mut dyn Model, random: bool, depth: u64, count: u64) -> f64 {
    // Within 64 GiB, so that tables stay small.
    let blocks = (model.capacity() / 4096).min(1 << 24);
    let mut state = 1u64;
    let mut request = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let block = if random { state % blocks } else { n % blocks };
        if n % 4 == 3 {
            Request::write(block * 4096, 4096)
        } else {
            Request::read(block * 4096, 4096)
        }
    };
    let mut out = Vec::new();
    let mut next = 0;
    while next < depth {
        model.submit(0, next, &request(next));
        next += 1;
    }
    let (mut done, mut now) = (0, 0);
    while done < count {
        let Some(at) = model.next_event() else { break };
        now = at;
        model.advance(at, &mut out);
        done += out.len() as u64;
        for completion in out.drain(..) {
            model.submit(completion.finished, next, &request(next));
            next += 1;
        }
    }
    now as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let count = 2_000_000;
    for entry in definition::ENTRIES
        .iter()
        .filter(|entry| names.is_empty() || names.iter().any(|name| name == entry.name))
    {
        let Some(definition) = definition::find(entry.name) else {
            continue;
        };
        let definition = definition?;
        for (load, random, depth) in LOADS {
            let mut model = build(&definition, 1)?;
            let start = processor_time()?;
            let virtual_seconds = serve(&mut *model, random, depth, count);
            let rate = count as f64 / (processor_time()? - start) / 1e6;
            writeln!(
                std::io::stdout(),
                "{:15} {load:21} {rate:6.2} million requests/s; virtual time {virtual_seconds:.1} s",
                entry.name
            )?;
        }
    }
    Ok(())
}
