//! What a request and its bytes cost.

use super::{Finding, Rule, Says};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends::{self, MODEL_ERROR_MAX};
use iolab_analysis::curve::Curve;
use iolab_workload::quantity::{format_bytes, format_ns, format_percent};

pub(crate) const FIXED_COSTS: Rule = Rule::result(
    "fixed-costs",
    "the median time of a request at each size, fitted as a fixed cost and a rate",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[fixed_costs];

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
