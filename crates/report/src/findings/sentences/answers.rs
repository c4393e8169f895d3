//! What only some experiments ask, in words.

use iolab_analysis::analysis::{Analysis, CellVerified, HELD_FROM, OVERLOAD_TOLD, Response};
use iolab_analysis::claim::{
    Estimate, FixedCosts, Load, Preparation, RateTimes, Rates, ReachedBy, SharedLimit, Together,
    Verified,
};
use iolab_analysis::equivalence::FIRST_TRIALS;
use iolab_workload::quantity::{
    counted, format_bytes, format_ns, format_p, format_percent, significant,
};

use super::{at, doubts, margin, times_of};
use crate::findings::cells_of;

/// Data that was read back.
pub(super) fn of_verified(verified: &Verified, run: &Analysis) -> String {
    let all = &verified.all;
    if all.failed > 0 {
        return wrong(verified.wrong, all, run);
    }
    let trials = counted(all.trials, "trial");
    let bytes = format_bytes(all.bytes as f64);
    let is_whole = verified.in_part + verified.unread == 0;
    let mut text = match is_whole {
        true => format!("All data that {trials} wrote was read back and is correct: {bytes}."),
        false => format!("The data of {trials} that was read back is correct: {bytes}."),
    };
    if verified.in_part > 0 {
        text += &match verified.in_part == all.trials {
            true => " Only a part of what they wrote was read back.".to_owned(),
            false => format!(
                " In {} of them only a part was read back.",
                verified.in_part
            ),
        };
    }
    if verified.unread > 0 {
        text += &format!(
            " The data of {} was not read back.",
            counted(verified.unread, "further trial")
        );
    }
    text + &from_page_cache(all)
}

/// What of it does not verify storage, or may not.
fn from_page_cache(all: &CellVerified) -> String {
    let known = all.trials.saturating_sub(all.cache_unknown);
    let (place, unknown) = match (all.cached_bytes, all.cache_unknown) {
        (_, 0) => (String::new(), None),
        (0, unknown) => (String::new(), Some(counted(unknown, "trial"))),
        (_, unknown) => (
            format!(" in {}", counted(known, "trial")),
            Some(counted(unknown, "other trial")),
        ),
    };
    let known = (all.cached_bytes > 0).then(|| {
        format!(
            " Up to {} of what was read back{place} came from the page cache, which could not be dropped, and does not verify storage.",
            format_bytes(all.cached_bytes as f64)
        )
    });
    let unknown = unknown
        .map(|trials| format!(" In {trials} it is not known how much came from the page cache."));
    [known, unknown].into_iter().flatten().collect()
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
            most: None,
            all: _,
            hidden,
        } => format!("{time}: {}.{}", at(least), hidden_overload(*hidden)),
        Rates::Held {
            least,
            most: Some(most),
            all: _,
            hidden,
        } if hidden.0 > OVERLOAD_TOLD => format!(
            "{time}: {}, and {}, the highest rate that is not shown to be too high.{}",
            at(least),
            at(most),
            hidden_overload(*hidden),
        ),
        Rates::Held {
            least,
            most: Some(most),
            all,
            hidden: _,
        } => format!(
            "{time}: {}, and {}, the highest rate {} (at least {} of {} requests were issued in time).",
            at(least),
            at(most),
            match all {
                true => "that was asked for. All rates were held",
                false => "that was held",
            },
            format_percent(HELD_FROM),
            match all {
                true => "their",
                false => "its",
            }
        ),
        // Half of the trials may have held what a few did not.
        Rates::NoneHeld { least, reached } if *reached >= HELD_FROM * least => format!(
            "No rate was held in every trial (at least {} of its requests issued in time). At {}/s, the lowest, the median trial reached {}/s.",
            format_percent(HELD_FROM),
            significant(*least),
            significant(*reached)
        ),
        Rates::NoneHeld { least, reached } => format!(
            "No rate was held (at least {} of its requests issued in time): at {}/s, the lowest, {}/s were reached. Response times at such rates grow with the length of a trial.",
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
        held => format!(" with {}", held.join(" ")),
    };
    let tests: Vec<String> = FIRST_TRIALS
        .iter()
        .zip(most.p)
        .filter_map(|(n, p)| Some(format!("p {} with {n} trials", format_p(p?))))
        .collect();
    let tests = match tests.as_slice() {
        [] => String::new(),
        some => format!("; {}", some.join(", ")),
    };
    let cost = most
        .ns_per_fault
        .map_or_else(String::new, |ns| format!(", {} per fault", format_ns(ns)));
    format!(
        "Untouched buffers give {} the throughput of zeroed ones{place}: {} against {}{tests}. A trial has {} page faults against {}{cost}. They are slower in {} of {} settings.",
        times_of(&most.ratio),
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

/// What groups reach at once, against the sum of what each reaches alone.
pub(super) fn of_together(together: &Together) -> String {
    let place = match at(&together.at).strip_prefix(" at ") {
        Some(levels) => format!("At {levels}, "),
        None => String::new(),
    };
    let response = together.response;
    let factor = together
        .estimate
        .as_ref()
        .map_or_else(|| "against".to_owned(), times_of);
    let compared = format!(
        "{place}{} groups at once reach {}, {factor} the {} that they reach one at a time, added up",
        together.alone_cells.len(),
        response.format(together.at_once),
        response.format(together.alone),
    );
    match &together.limit {
        SharedLimit::Shared(ReachedBy::Groups(level)) => format!(
            "{compared}: they share a limit; {} already {} it.",
            listed(level),
            match level.contains('+') {
                true => "reach",
                false => "reaches",
            }
        ),
        SharedLimit::Shared(ReachedBy::AllOnly) => {
            format!("{compared}: they share a limit; no smaller set that was measured reaches it.")
        }
        SharedLimit::Shared(ReachedBy::Unknown) => {
            format!("{compared}: they share a limit; cannot tell whether fewer of them reach it.")
        }
        SharedLimit::NotShared => {
            format!(
                "{compared}: they share no limit up to that sum (within {}).",
                margin()
            )
        }
        SharedLimit::NotFound => format!(
            "{compared}: no shared limit was found.{}",
            detectable(together.estimate.as_ref())
        ),
        SharedLimit::CannotTell if together.doubts.is_empty() => {
            format!("{compared}: too few trials to tell whether they share a limit.")
        }
        SharedLimit::CannotTell => {
            format!(
                "{compared}: cannot tell whether they share a limit: {}.",
                doubts(&together.doubts)
            )
        }
    }
}

/// ` A shared limit that costs more than 12 % would have been found.`
fn detectable(estimate: Option<&Estimate>) -> String {
    let interval = estimate.and_then(|estimate| estimate.interval);
    interval.map_or_else(String::new, |(low, _)| {
        format!(
            " A shared limit that costs more than {} would have been found.",
            format_percent(1.0 - low)
        )
    })
}

/// The groups of a level: `a, b and c`.
fn listed(level: &str) -> String {
    match level.rsplit_once('+') {
        Some((before, last)) => format!("{} and {last}", before.replace('+', ", ")),
        None => level.to_owned(),
    }
}
