//! A plan that iolab and its peers can run alike.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use iolab_plan::cells::{Plan, cells};
use iolab_plan::experiment::{Change, Experiment};
use iolab_workload::Result;
use iolab_workload::names::all_of;
use iolab_workload::settings::{CellSpec, Tool, own_cells};
use iolab_workload::trial::{BufferInit, Descriptors, FileLayout, TrialSpec};
use iolab_workload::units::rough_duration;

use super::{PeerList, find, known, overhead};

/// A setting and the value that a peer needs.
pub type Need = (&'static str, String);

/// Changes an experiment so that its peers can run its cells, for all tools alike. Factors, and settings
/// `chosen` by the user, stay as they are. Returns the changes in one line; `None` if there were none.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no peer has the name of a tool; or no peer can run the
/// experiment, with the reason.
pub fn adapt(
    all: PeerList,
    experiment: &mut Experiment,
    chosen: &dyn Fn(&str) -> bool,
) -> Result<Option<String>> {
    let planned = cells(experiment)?;
    let tools: BTreeSet<Tool> = planned.iter().map(|cell| cell.spec.tool).collect();
    let mut changed: Vec<String> = Vec::new();
    for tool in tools.iter().filter(|tool| tool.is_peer()) {
        let planned = cells(experiment)?;
        let own = planned.iter().filter(|cell| cell.spec.tool == *tool);
        let specs: Vec<&TrialSpec> = own.map(|cell| &cell.spec.trial).collect();
        let mut needs = common(&specs);
        needs.extend((find(all, *tool)?.needs)(&specs));
        for (name, value) in needs {
            let varies = experiment.factors.iter().any(|factor| factor.of.is(name));
            if varies || chosen(name) {
                continue;
            }
            experiment.apply(&Change::of(name, &value)?)?;
            changed.push(format!("{name}={value}"));
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let peers = tools.iter().filter(|tool| tool.is_peer());
    let peers: Vec<String> = peers.map(Tool::to_string).collect();
    let tools = std::iter::once("iolab").chain(peers.iter().map(String::as_str));
    let tools: Vec<&str> = tools.collect();
    Ok(Some(format!(
        "{}: changed so that {} can do the same: {}",
        experiment.name,
        all_of(&tools),
        changed.join(", ")
    )))
}

/// Time of a tool in addition to its I/O from which users are informed.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// Message on peers that take long in addition to their I/O; `None` if there are none.
pub fn waiting(all: PeerList, plan: &Plan) -> Option<String> {
    let mut sleeps: BTreeMap<Tool, Vec<Duration>> = BTreeMap::new();
    for cell in plan.cells() {
        let slept = overhead(all)(&cell.spec);
        if slept >= WORTH_TELLING {
            sleeps.entry(cell.spec.tool).or_default().push(slept);
        }
    }
    let told = sleeps.iter().map(|(tool, sleeps)| {
        let block: Duration = sleeps.iter().sum();
        let mean = block.as_secs_f64() / sleeps.len() as f64;
        format!(
            "{tool} sleeps about {mean:.0} s in each of its runs, whatever it measures: {} in each block of trials",
            rough_duration(block)
        )
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Cells that their tool cannot carry out for one reason.
pub struct Gap {
    /// The cells and the reason, in words.
    pub told: String,
    /// The reason.
    pub why: String,
    /// Numbers of the cells.
    pub cells: Vec<usize>,
}

/// The cells of a plan from `first` on that their tool cannot carry out, for each reason that `gap` gives.
pub fn gaps(plan: &Plan, first: usize, gap: &dyn Fn(&CellSpec) -> Option<String>) -> Vec<Gap> {
    let cells = || plan.cells().iter().enumerate().skip(first);
    let mut found: BTreeMap<(Tool, String), Vec<usize>> = BTreeMap::new();
    for (id, cell) in cells() {
        if let Some(why) = gap(&cell.spec) {
            found.entry((cell.spec.tool, why)).or_default().push(id);
        }
    }
    let factors = plan.factor_names();
    let told = found.into_iter().map(|((tool, why), ids)| {
        let levels = |is_gap: bool| -> Vec<&[String]> {
            let own =
                cells().filter(|(id, cell)| cell.spec.tool == tool && ids.contains(id) == is_gap);
            own.map(|(_, cell)| cell.levels.as_slice()).collect()
        };
        let which = own_cells(&factors, &levels(true), &levels(false));
        Gap {
            told: format!("{tool} cannot measure {which}: {why}"),
            why,
            cells: ids,
        }
    });
    told.collect()
}

/// Why a peer cannot carry out its cell, whatever the target.
pub fn gap_anywhere(all: PeerList) -> impl Fn(&CellSpec) -> Option<String> {
    move |cell| {
        let peer = known(all, cell.tool)?;
        let files = vec![PathBuf::new(); cell.trial.threads as usize];
        (peer.arguments)(&cell.trial, &files).err()
    }
}

/// Needs of every peer: it opens existing files, and prepares its buffers in its own way.
fn common(specs: &[&TrialSpec]) -> Vec<Need> {
    let any = |of: fn(&TrialSpec) -> bool| specs.iter().any(|spec| of(spec));
    let needs = [
        (any(|s| s.starts_fresh()), ("allocate", "none")),
        (
            any(|s| s.descriptors == Descriptors::Shared),
            ("descriptors", "private"),
        ),
        (
            any(|s| s.layout == FileLayout::Interleaved),
            ("layout", "shared"),
        ),
        (
            any(|s| s.buffer_init != BufferInit::Random),
            ("buffer_init", "random"),
        ),
    ];
    needed(needs)
}

/// The needs among these that there are.
pub fn needed(needs: impl IntoIterator<Item = (bool, (&'static str, &'static str))>) -> Vec<Need> {
    let needed = needs.into_iter().filter(|(needed, _)| *needed);
    let needed = needed.map(|(_, (name, value))| (name, value.to_owned()));
    needed.collect()
}
