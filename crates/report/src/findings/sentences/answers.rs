//! Claims of particular experiments, in words.

use iolab_analysis::analysis::{Analysis, CellVerified, HELD_FROM, OVERLOAD_TOLD, Response};
use iolab_analysis::claim::{FixedCosts, Load, Preparation, RateTimes, Rates, Verified};
use iolab_workload::quantity::{counted, format_bytes, format_ns, format_percent, significant};

use super::doubts;
use super::sentence::{List, sentence};
use crate::findings::cells_of;
use crate::ratio::RatioShown;

/// Data that was read back.
pub(super) fn of_verified(verified: &Verified, run: &Analysis) -> String {
    let all = &verified.all;
    if all.failed > 0 {
        return wrong(verified.wrong, all, run);
    }
    let bytes = format_bytes(all.bytes as f64);
    let head = match verified.in_part + verified.unread {
        0 => format!(
            "All data that {} wrote was read back and is correct: {bytes}",
            counted(all.trials, "trial")
        ),
        _ => format!("The data that was read back is correct: {bytes}"),
    };
    let count = |label: &str, n: u64, of: &str| List {
        label: label.to_owned(),
        items: (n > 0).then(|| counted(n, of)).into_iter().collect(),
    };
    let cached = (all.cached_bytes > 0).then(|| format_bytes(all.cached_bytes as f64));
    let lists = [
        count("Read back in part", verified.in_part, "trial"),
        count("Not read back", verified.unread, "trial"),
        List {
            label: "At most so much came from the page cache, which does not verify storage"
                .to_owned(),
            items: cached.into_iter().collect(),
        },
        count(
            "Share of the page cache unknown",
            all.cache_unknown,
            "trial",
        ),
    ];
    sentence(&head, lists, usize::MAX)
}

fn wrong(cells: usize, all: &CellVerified, run: &Analysis) -> String {
    let kinds: Vec<String> = all
        .kinds()
        .map(|(kind, blocks)| format!("{blocks} {}", kind.name()))
        .collect();
    format!(
        "{}: this storage did NOT keep what was written to it. Of {} blocks read back in {} trials these were wrong: {}. The first places are in the run file. Do not use any result before the cause is found.",
        cells_of(cells, run),
        all.blocks,
        all.trials,
        kinds.join(", "),
    )
}

/// Response times at a given load, or the reason why the measured ones may not show the storage.
pub(super) fn of_load(load: &Load, run: &Analysis) -> String {
    let measured = at_rates(load, run);
    match load.doubts.as_slice() {
        [] => measured + &in_cache(&load.rates),
        all => format!(
            "Cannot tell the response times of the undisturbed storage at these rates: {}. {measured}",
            doubts(all)
        ),
    }
}

fn at_rates(load: &Load, run: &Analysis) -> String {
    let time = run.timed.subject("Median response time");
    let at = |one: &RateTimes| {
        let interval = one.p50.map_or_else(String::new, |interval| {
            let value = format_ns(one.p50_ns);
            let ends = (format_ns(interval.low), format_ns(interval.high));
            // Of an interval that is narrower than the digits, both ends would repeat the value.
            match ends.0 == value && ends.1 == value {
                true => String::new(),
                false => format!("{} to {}; ", ends.0, ends.1),
            }
        });
        format!(
            "{} ({interval}99th percentile {}) at {}/s",
            format_ns(one.p50_ns),
            format_ns(one.p99_ns),
            significant(one.rate)
        )
    };
    match &load.rates {
        Rates::Held {
            least,
            most,
            all,
            hidden,
        } => {
            let highest = most.as_ref().map_or_else(String::new, |most| {
                let why = match (hidden.0 > OVERLOAD_TOLD, all) {
                    (true, _) => "that is not shown to be too high",
                    (false, true) => "asked for",
                    (false, false) => "that was held",
                };
                format!(", and {}, the highest rate {why}", at(most))
            });
            format!(
                "{time}: {}{highest}.{}",
                at(least),
                hidden_overload(*hidden)
            )
        }
        Rates::NoneHeld { least, reached } => format!(
            "No rate was held (at least {} of its requests issued in time): at {}/s, the lowest, the median trial reached {}/s. Response times at such rates grow with the length of a trial.",
            format_percent(HELD_FROM),
            significant(*least),
            significant(*reached)
        ),
    }
}

/// Note that a cache took in the writes of the highest rate; empty if none did.
fn in_cache(rates: &Rates) -> String {
    let Rates::Held { least, most, .. } = rates else {
        return String::new();
    };
    let highest = most.as_ref().unwrap_or(least);
    highest.cached.map_or_else(String::new, |share| {
        format!(
            " At {}/s a cache of the storage took the writes in: storing them took another {} of a trial's time. A load that outlasts the cache may not hold this rate.",
            significant(highest.rate),
            format_percent(share)
        )
    })
}

/// Note on the overload that trials are too short to show; empty if they are long enough.
fn hidden_overload((share, span_ns): (f64, f64)) -> String {
    if share <= OVERLOAD_TOLD {
        return String::new();
    }
    format!(
        " In trials of {} an overload of up to {} does not show: the storage completed their requests after their end. Increase --time.",
        format_ns(span_ns),
        format_percent(share),
    )
}

/// Cost of page faults of untouched buffers.
pub(super) fn of_preparation(preparation: &Preparation, run: &Analysis) -> String {
    let most = &preparation.most;
    let place = match most.held.as_slice() {
        [] => String::new(),
        held => format!(" at {}", held.join(", ")),
    };
    let cost = most
        .ns_per_fault
        .map_or_else(String::new, |ns| format!(": {} per fault", format_ns(ns)));
    let ratio = RatioShown::beside(&most.ratio, (most.medians.1, most.medians.0));
    format!(
        "Page faults{cost}. Untouched buffers have {} throughput than zeroed ones{place}: {} against {}, with {} page faults a trial against {}. They are slower in {} of {} settings.",
        ratio.in_words(),
        run.response.format(most.medians.0),
        run.response.format(most.medians.1),
        significant(most.faults.0),
        significant(most.faults.1),
        preparation.slower,
        preparation.settings,
    )
}

/// Cost of a request and of its bytes.
pub(super) fn of_fixed_costs(costs: &FixedCosts) -> String {
    let parts = costs.curves.iter().map(|curve| {
        let model = &curve.model;
        let place = match curve.held.is_empty() {
            true => String::new(),
            false => format!(" with {}", curve.held.join(" ")),
        };
        let half = curve.half_rate.map_or_else(String::new, |size| {
            format!(
                " Half of that rate is reached at {}.",
                format_bytes(size.round())
            )
        });
        // Bytes per ns are GB/s, a thousand MB/s.
        let rate = Response::Throughput.format(model.bandwidth * 1e3);
        format!(
            "Time per request{place} is {} + size / {rate}, to within {}.{half}",
            format_ns(significant_ns(model.t0)),
            format_percent(model.relative_error_max),
        )
    });
    parts.collect::<Vec<String>>().join(" ")
}

/// Digits below a tenth of a nanosecond mean nothing.
fn significant_ns(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}
