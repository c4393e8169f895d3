//! A random stack with driver devices in a guest, and its outcome as JSON.

use serde_json::{Value, json};

use crate::stacks::plan::Format;
use crate::stacks::trial::{self, Outcome, Outcomes};
use crate::stacks::{Expectation, Mapping, Plan, draw};

/// Builds the stack of a seed, and lets iolab write to each of its nodes. The result has `nodes`, each with
/// `target`, `expected`, `code`, `faults` and possibly `text`; `faults` of the take-down, and `steps`; or
/// `error` if it could not be made.
pub fn of(seed: u64) -> Value {
    let plan = draw::plan(seed, Format::ALL, Mapping::ALL);
    match trial::of_every_node(&plan) {
        Ok(Outcomes { nodes, faults }) => json!({
            "nodes": nodes.into_iter().map(node).collect::<Vec<_>>(),
            "faults": faults,
            "steps": shown(&plan),
        }),
        Err(why) => json!({ "error": why.to_string(), "steps": shown(&plan) }),
    }
}

fn node(outcome: Outcome) -> Value {
    let Outcome {
        target,
        verdict,
        code,
        text,
        faults,
        paths: _,
    } = outcome;
    json!({
        "target": target,
        "expected": match verdict {
            Expectation::Free => "free",
            Expectation::Taken(_) => "taken",
            Expectation::Open(_) => "open",
        },
        "code": code,
        "text": (!faults.is_empty()).then_some(text),
        "faults": faults,
    })
}

/// Steps of a plan for people.
fn shown(plan: &Plan) -> Vec<String> {
    let steps = plan.all().map(|(id, step)| format!("{id}: {step:?}"));
    let asked = format!("{:?}, {:?}", plan.consent, plan.view);
    steps.chain([asked]).collect()
}
