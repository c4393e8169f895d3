//! Compares a model with a real drive: replays the requests of a trace, and compares the times.
//!
//! One request is outstanding: the next is issued after the same gap as in the trace.

use crate::definition::Definition;

use crate::build::build;
use crate::model::{Model, Ns, Op, Request, ServedFrom, serve};

/// One request of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// Read or write.
    pub op: Op,
    /// What the trace says about the drive's buffer.
    pub buffer: String,
    /// First block.
    pub first: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Service time of the drive, in ns.
    pub service: Ns,
    /// From its end to the start of the next request, in ns.
    pub gap: Ns,
}

/// Reads a trace: on each line direction (`R`, `W`), what the buffer did, first block, number of blocks, service time in
/// microseconds, and the time to the next request in microseconds.
///
/// # Errors
///
/// The number of the first line without this form.
pub fn parse_trace(text: &str) -> Result<Vec<Traced>, String> {
    let mut requests = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|word| word.parse::<f64>().ok())
                .filter(|x| x.is_finite() && *x >= 0.0)
        };
        let whole = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let op = match words[0] {
            "R" => Some(Op::Read),
            "W" => Some(Op::Write),
            _ => None,
        };
        let (Some(op), Some(buffer), Some(first), Some(blocks), Some(service), Some(gap)) = (
            op,
            words.get(1),
            whole(2),
            whole(3).filter(|&blocks| blocks > 0),
            number(4),
            number(5),
        ) else {
            return Err(format!("line {}: not a request: {line}", n + 1));
        };
        requests.push(Traced {
            op,
            buffer: (*buffer).to_string(),
            first,
            blocks,
            service: (service * 1e3).round() as Ns,
            gap: (gap * 1e3).round() as Ns,
        });
    }
    if requests.is_empty() {
        Err("the trace holds no request".into())
    } else {
        Ok(requests)
    }
}

/// One request of a trace, with the times of the drive and of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// Read or write.
    pub op: Op,
    /// Service time of the drive, in ns.
    pub measured: Ns,
    /// Service time of the model, in ns.
    pub modelled: Ns,
    /// How the model served it.
    pub served: ServedFrom,
}

/// Replays a trace on a model whose blocks have `block` bytes.
pub fn replay(model: &mut dyn Model, block: u64, trace: &[Traced]) -> Vec<Replayed> {
    let mut now = 0;
    trace
        .iter()
        .map(|traced| {
            let request = Request {
                op: traced.op,
                offset: traced.first * block,
                len: traced.blocks * block,
            };
            let completion = serve(model, now, &request);
            let modelled = completion.finished - now;
            now = completion.finished + traced.gap;
            Replayed {
                op: traced.op,
                measured: traced.service,
                modelled,
                served: completion.served,
            }
        })
        .collect()
}

/// The errors of a group of requests, in ms.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    /// Name of the group.
    pub group: String,
    /// Number of requests.
    pub requests: usize,
    /// Mean of the measured times.
    pub measured_mean: f64,
    /// Mean of the modelled times.
    pub modelled_mean: f64,
    /// Root mean square of the horizontal distance of the two distributions.
    pub rms: f64,
    /// Median of the absolute error per request.
    pub median: f64,
    /// 95th percentile of the absolute error per request.
    pub p95: f64,
}

/// The result of a replay: all requests first, then by direction, then by how the model served them.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Requests outside the model's range, which are in no group.
    pub outside: usize,
    /// One entry for each group with a request.
    pub groups: Vec<Errors>,
}

impl Check {
    /// All requests together; `None` when all of them are outside the model's range.
    pub fn all(&self) -> Option<&Errors> {
        self.groups.first()
    }
}

/// Compares the model's times with the measured ones.
pub fn compare(replayed: &[Replayed]) -> Check {
    let inside: Vec<Replayed> = replayed
        .iter()
        .copied()
        .filter(|one| one.served != ServedFrom::Refused)
        .collect();
    if inside.is_empty() {
        return Check {
            outside: replayed.len(),
            groups: Vec::new(),
        };
    }
    let mut groups = vec![errors("all", inside.iter())];
    let mut add = |name: &str, keep: &dyn Fn(&Replayed) -> bool| {
        if inside.iter().any(keep) {
            groups.push(errors(name, inside.iter().filter(|one| keep(one))));
        }
    };
    add("reads", &|one| one.op == Op::Read);
    add("writes", &|one| one.op == Op::Write);
    add("read hits", &|one| {
        one.op == Op::Read && one.served == ServedFrom::Hit
    });
    add("partial hits", &|one| {
        one.op == Op::Read && one.served == ServedFrom::Partial
    });
    add("read misses", &|one| {
        one.op == Op::Read && one.served == ServedFrom::Miss
    });
    add("buffered writes", &|one| {
        one.op == Op::Write && one.served == ServedFrom::Buffered
    });
    add("written through", &|one| {
        one.op == Op::Write && one.served == ServedFrom::Miss
    });
    Check {
        outside: replayed.len() - inside.len(),
        groups,
    }
}

/// Replays a trace on the model of a definition and compares the times.
///
/// # Errors
///
/// Why the definition makes no model, in words.
pub fn check(definition: &Definition, trace: &[Traced]) -> Result<Check, String> {
    let mut model = build(definition, 0)?;
    Ok(compare(&replay(&mut *model, definition.block(), trace)))
}

fn errors<'a>(group: &str, requests: impl Iterator<Item = &'a Replayed>) -> Errors {
    let mut measured = Vec::new();
    let mut modelled = Vec::new();
    let mut wrong = Vec::new();
    for one in requests {
        let (a, b) = (one.measured as f64 / 1e6, one.modelled as f64 / 1e6);
        measured.push(a);
        modelled.push(b);
        wrong.push((a - b).abs());
    }
    for values in [&mut measured, &mut modelled, &mut wrong] {
        values.sort_by(f64::total_cmp);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Errors {
        group: group.to_string(),
        requests: measured.len(),
        measured_mean: mean(&measured),
        modelled_mean: mean(&modelled),
        rms: distance(&measured, &modelled),
        median: quantile(&wrong, 0.5),
        p95: quantile(&wrong, 0.95),
    }
}

/// Root mean square of the horizontal distance between the distributions of two sorted samples, at the quantiles
/// 0.0001, 0.0002, ... 0.9999: the demerit figure of Ruemmler and Wilkes, IEEE Computer 27(3), 1994.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares: f64 = (1..10_000)
        .map(|k| {
            let p = f64::from(k) / 1e4;
            (quantile(a, p) - quantile(b, p)).powi(2)
        })
        .sum();
    (squares / 9_999.0).sqrt()
}

/// A quantile of a sorted sample, with a straight line between order statistics (type 7 of Hyndman and Fan).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let h = (sorted.len() - 1) as f64 * p;
    let low = h.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (h - low as f64) * (sorted[high] - sorted[low])
}
