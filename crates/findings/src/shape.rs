//! The shape of curves over I/O sizes: where they are best, where they bend, what a request and its bytes cost.

use super::{Finding, Rule, Says, capitalised};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends::{self, Bend, Bends, MODEL_ERROR_MAX};
use iolab_analysis::curve::Curve;
use iolab_workload::quantity::{format_bytes, format_ns, format_percent};
use iolab_workload::units::format_size;

pub(crate) const BENDS: Rule = Rule::result(
    "bends",
    "straight pieces on log axes, their number by an information criterion; intervals from resampled trials",
);
pub(crate) const FIXED_COSTS: Rule = Rule::result(
    "fixed-costs",
    "the median time of a request at each size, fitted as a fixed cost and a rate",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfBends(bends), Says::OfCells(fixed_costs)];

/// Where each curve bends, and what the machine has at these sizes.
pub fn bends(analysis: &Analysis, found: &Bends) -> Vec<Finding> {
    let mut coincides = false;
    let mut findings = Vec::new();
    for curve in bends::bendable(analysis) {
        let bends = found.on(&curve);
        if bends.is_empty() {
            continue;
        }
        coincides |= bends.iter().any(|bend| !bend.thresholds.is_empty());
        let parts: Vec<String> = bends.iter().map(bend_in_words).collect();
        let name = capitalised(&analysis.response.to_string());
        findings.push(Finding {
            rule: BENDS,
            text: format!("{name}{} bends at {}.", curve.place(), parts.join("; at ")),
        });
    }
    if coincides {
        findings.push(Finding {
            rule: BENDS,
            text: "A bend that coincides with a threshold of the machine suggests a cause, but does not prove it."
                .to_owned(),
        });
    }
    findings
}

/// `34.2 KiB (95 % interval 30.1 KiB to 40.2 KiB, slope 0.90 to 0.21), which coincides with the L1d cache of 32KiB`.
fn bend_in_words(bend: &Bend) -> String {
    // Zero has no sign in a sentence.
    let rounded = |slope: f64| (slope * 100.0).round() / 100.0 + 0.0;
    let (before, after) = (rounded(bend.slope_before), rounded(bend.slope_after));
    let slopes = format!("slope {before:.2} to {after:.2}");
    let mut text = format_bytes(bend.size);
    match bend.interval {
        Some(interval) => text.push_str(&format!(
            " (95 % interval {} to {}, {slopes})",
            format_bytes(interval.low),
            format_bytes(interval.high)
        )),
        None => text.push_str(&format!(" (no interval, {slopes})")),
    }
    let names: Vec<String> = bend
        .thresholds
        .iter()
        .map(|threshold| format!("the {} of {}", threshold.name, format_size(threshold.bytes)))
        .collect();
    if !names.is_empty() {
        text.push_str(&format!(", which coincides with {}", names.join(" and ")));
    }
    text
}

/// What a request and what its bytes cost, for the curves that the model describes.
pub fn fixed_costs(analysis: &Analysis) -> Vec<Finding> {
    let parts: Vec<String> = bends::bendable(analysis)
        .iter()
        .filter_map(|curve| {
            let model = bends::fixed_cost(analysis, curve)?;
            // Bytes per ns are GB/s, a thousand MB/s.
            let rate = Response::Throughput.format(model.bandwidth * 1e3);
            Some(format!(
                "{}{} and {rate} (error up to {}; half of that rate at {})",
                label(curve),
                format_ns(significant_ns(model.t0)),
                format_percent(model.relative_error_max),
                format_bytes(model.n_half.round()),
            ))
        })
        .collect();
    if parts.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        rule: FIXED_COSTS,
        text: format!(
            "A fixed cost per request and a rate for its bytes describe the time of a request to within {}: {}.",
            format_percent(MODEL_ERROR_MAX),
            parts.join("; ")
        ),
    }]
}

/// Digits below a tenth of a nanosecond mean nothing.
fn significant_ns(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// The levels that a curve holds, as the start of an entry of a list.
pub(super) fn label(curve: &Curve<'_>) -> String {
    if curve.held.is_empty() {
        String::new()
    } else {
        format!("{} ", curve.held.join(" "))
    }
}
