//! A random stack in a guest, with devices of drivers to draw from, and what became of it as JSON.

use serde_json::{Value, json};

use crate::stacks::plan::Format;
use crate::stacks::{Expectation, Mapping, Plan, draw, trial};

/// Builds the stack of a seed, and lets iolab write to a node of it: `expected`, `code`, `text`, `faults` and `steps`, or `error`
/// where it could not be made.
pub fn of(seed: u64) -> Value {
    let plan = draw::plan(seed, Format::ALL, Mapping::ALL);
    match trial::of(&plan) {
        Ok(outcome) => json!({
            "expected": match &outcome.verdict {
                Expectation::Free => "free",
                Expectation::Taken(_) => "taken",
                Expectation::Open(_) => "open",
            },
            "code": outcome.code,
            "text": outcome.text,
            "faults": outcome.faults,
            "steps": shown(&plan),
        }),
        Err(why) => json!({ "error": why.to_string(), "steps": shown(&plan) }),
    }
}

/// A plan, step by step, as a person reads it.
fn shown(plan: &Plan) -> Vec<String> {
    let steps = plan.all().map(|(id, step)| {
        let mark = if id == plan.target { " <- target" } else { "" };
        format!("{id}: {step:?}{mark}")
    });
    let asked = format!("{:?}, {:?}", plan.consent, plan.view);
    steps.chain([asked]).collect()
}
