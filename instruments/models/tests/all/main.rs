//! The models against published values and against each other. One program, so that it is linked once.

mod disk;
mod drives;
mod flash;
mod hostile;
mod layout;
mod models;
mod parts;
#[cfg(feature = "measure")]
mod serve;
#[cfg(feature = "measure")]
mod simulated;

use iolab_models::definition::{self, Definition};
use iolab_workload::virtual_disk::{Completion, Model, Request};

/// A built-in definition.
fn built_in(name: &str) -> Definition {
    Definition::parse(definition::built_in(name).unwrap()).unwrap()
}

/// Advances time until all requests have completed.
fn drain(model: &mut dyn Model, out: &mut Vec<Completion>) {
    while let Some(at) = model.next_event() {
        model.advance(at, out);
    }
}

/// MB/s of sequential requests of `bytes`, `depth` at a time, `count` in all, from `offset` on.
fn rate(
    model: &mut dyn Model,
    write: bool,
    bytes: u64,
    depth: u64,
    count: u64,
    offset: u64,
    start: u64,
) -> (f64, u64) {
    let mut out = Vec::new();
    let mut next = 0;
    let mut now = start;
    let request = |n: u64| {
        let at = offset + n * bytes;
        if write {
            Request::write(at, bytes)
        } else {
            Request::read(at, bytes)
        }
    };
    while next < depth.min(count) {
        model.submit(now, next, &request(next));
        next += 1;
    }
    let mut done = 0;
    while done < count {
        now = model.next_event().unwrap();
        model.advance(now, &mut out);
        for completion in out.drain(..) {
            done += 1;
            if next < count {
                model.submit(completion.finished, next, &request(next));
                next += 1;
            }
        }
    }
    ((count * bytes) as f64 / ((now - start) as f64 / 1e3), now)
}
