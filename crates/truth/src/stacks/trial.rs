//! Trial of iolab on one node of a stack, with a comparison of all others.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::Built;
use super::contents::{self, Piece};
use super::oracle::{self, Expectation};
use super::plan::{Id, Plan, Step, View};
use crate::system::{Made, failed, warn};

/// Result file of a run, in the folder of the stack.
const RESULTS: &str = "run.iolab";

/// Result of iolab on a node of a stack, with all faults.
#[derive(Debug)]
pub struct Outcome {
    /// Node that was written to.
    pub target: Id,
    /// Required behaviour.
    pub verdict: Expectation,
    /// Exit code.
    pub code: Option<i32>,
    /// Output of iolab.
    pub text: String,
    /// Faults of the trial: whatever must not have happened.
    pub faults: Vec<String>,
    /// Path that each step made.
    pub paths: Vec<PathBuf>,
}

/// Results of iolab on every node of a stack.
#[derive(Debug)]
pub struct Outcomes {
    /// Results node by node.
    pub nodes: Vec<Outcome>,
    /// Faults found when the stack was taken down.
    pub faults: Vec<String>,
}

/// Makes a stack, lets iolab write to its target, and takes the stack down again, with checks on the way.
///
/// # Errors
/// The stack cannot be made.
pub fn of(plan: &Plan) -> Made<Outcome> {
    let mut stack = Stack::new(plan, &[plan.target])?;
    let mut outcome = stack.ask(plan)?;
    outcome.faults.extend(stack.taken_down(plan));
    Ok(outcome)
}

/// Trial with every node as the target, one after another. Used nodes come first, because a write to a free one
/// may end another one's use.
///
/// # Errors
/// As [`of`].
pub fn of_every_node(plan: &Plan) -> Made<Outcomes> {
    let mut plans: Vec<Plan> = plan
        .targets()
        .map(|target| Plan {
            target,
            ..plan.clone()
        })
        .collect();
    plans.sort_by_key(|plan| match oracle::verdict(plan) {
        Expectation::Taken(_) => 0,
        Expectation::Open(_) => 1,
        Expectation::Free => 2,
    });
    let targets: Vec<Id> = plans.iter().map(|plan| plan.target).collect();
    let mut stack = Stack::new(plan, &targets)?;
    let nodes = plans.iter().map(|plan| stack.ask(plan));
    let nodes = nodes.collect::<Made<_>>()?;
    Ok(Outcomes {
        nodes,
        faults: stack.taken_down(plan),
    })
}

/// A stack that iolab is asked to write to.
struct Stack {
    built: Built,
    /// Pieces that nothing may have changed so far.
    pieces: Vec<Piece>,
}

impl Stack {
    fn new(plan: &Plan, targets: &[Id]) -> Made<Self> {
        let built = Built::new(plan)?;
        let pieces = contents::all(plan, targets, &built)?;
        Ok(Self { built, pieces })
    }

    /// Lets iolab write to the target of a plan.
    fn ask(&mut self, plan: &Plan) -> Made<Outcome> {
        let (built, target) = (&self.built, plan.target);
        let verdict = oracle::verdict(plan);
        let listed = names_in(plan, built);
        let (code, text) = ask(built, plan)?;
        let mut faults = Vec::from_iter(judged(&verdict, code, &text, built.path(target)));
        if listed != names_in(plan, built) {
            faults.push("other names are in the folder than before".to_owned());
        }
        // An accepted run may overwrite its target, and nothing else.
        let was_written = code != Some(3);
        self.pieces.retain(|piece| {
            let changed = match was_written && piece.is_in(plan, target) {
                true => return false,
                false => piece.changed(built),
            };
            let is_whole = changed.is_none();
            faults.extend(changed);
            is_whole
        });
        Ok(Outcome {
            target,
            verdict,
            code,
            text,
            faults,
            paths: (0..plan.steps.len())
                .map(|id| built.path(id).to_owned())
                .collect(),
        })
    }

    /// Takes the stack down from its top; every file system is checked, mounted anew and compared.
    fn taken_down(self, plan: &Plan) -> Vec<String> {
        let Self { mut built, pieces } = self;
        let mut faults = Vec::new();
        for (id, step) in plan.all().collect::<Vec<_>>().into_iter().rev() {
            let mut steps = || -> Made<()> {
                built.take_down(id)?;
                if let Step::Mount { .. } = step {
                    built.mount_again(plan, id)?;
                    let inside = pieces.iter().filter(|piece| piece.home == id);
                    // Pieces below an overlay or a bind mount cannot be reached by their path once that is
                    // taken down.
                    let there = inside.filter(|piece| is_direct(plan, piece.step));
                    faults.extend(there.filter_map(|piece| piece.changed(&built)));
                    built.take_down(id)?;
                }
                Ok(())
            };
            if let Err(why) = steps() {
                faults.push(format!("step {id}, taken down: {why}"));
            }
        }
        faults
    }
}

/// Whether the path of a file leads only through the mount of its file system.
fn is_direct(plan: &Plan, id: usize) -> bool {
    match plan.steps[id] {
        Step::File { within, .. } | Step::Folder { within } => is_direct(plan, within),
        Step::Root | Step::Mount { .. } => true,
        _ => false,
    }
}

/// Fault in an answer, if any.
fn judged(verdict: &Expectation, code: Option<i32>, text: &str, target: &Path) -> Option<String> {
    let names = [target.display().to_string(), "cannot tell".to_owned()];
    let is_told = names.iter().any(|name| text.contains(name));
    match (verdict, code) {
        (Expectation::Free | Expectation::Open(_), Some(0)) => None,
        (Expectation::Taken(_) | Expectation::Open(_), Some(3)) if is_told => None,
        (_, Some(3)) if !is_told => {
            Some("refused without the target's name or a reason".to_owned())
        }
        // A file system may be too small for a scratch file.
        (Expectation::Open(_), Some(2)) => None,
        // A file system below may have no room for the file's missing bytes; the tests of space cover that.
        (Expectation::Free, Some(3)) if text.contains("of new space from the file system") => None,
        (Expectation::Free, _) => Some("not accepted, although it is free".to_owned()),
        (Expectation::Taken(why), Some(0)) => {
            Some(format!("accepted, although {}", why.join(", ")))
        }
        (Expectation::Taken(why), _) => Some(format!("not refused, although {}", why.join(", "))),
        (Expectation::Open(_), _) => Some("neither written to nor refused".to_owned()),
    }
}

/// Lets iolab write to the target of a plan; exit code and output.
fn ask(built: &Built, plan: &Plan) -> Made<(Option<i32>, String)> {
    let words = match (plan.extent(plan.target), oracle::names(plan)) {
        (None, _) => None,
        (Some(_), None) => Some("--destroy-data".to_owned()),
        (Some(_), Some(names)) => Some(format!("--destroy-data={names}")),
    };
    // No run overwrites the results of another.
    let _ = std::fs::remove_file(built.scene.folder().join(RESULTS));
    let mut command = seeing(built, plan.view);
    command
        .arg(built.scene.binary())
        .args(["run", "write-random"])
        .arg(built.path(plan.target))
        .args(["--set", "bs=64k", "--size", "4M"])
        .args(["--budget", ".3", "--time", ".05", "-o", RESULTS])
        .args(words)
        .env("COLUMNS", "1000")
        .env("NO_COLOR", "1");
    let output = built.scene.carry_out(&mut command, |_| {});
    Ok(crate::iolab::answer(&output.map_err(failed("iolab"))?))
}

/// Command prefix that gives a program a view of the machine, and kills it after five minutes: next to other
/// guests, an accepted run can take more than one.
fn seeing(built: &Built, view: View) -> Command {
    let hidden = match view {
        View::Whole => None,
        View::NoSys => Some("/sys"),
        View::NoProc => Some("/proc"),
    };
    let mut command = match hidden {
        None => built.scene.command(Path::new("timeout")),
        Some(folder) => {
            let mut unshare = built.scene.command(Path::new("unshare"));
            let script = format!("mount -t tmpfs none {folder} && exec \"$@\"");
            unshare
                .args(["--mount", "--propagation", "private", "sh", "-c", &script])
                .args(["sh", "timeout"]);
            unshare
        }
    };
    command.args(["-s", "KILL", "300"]);
    command
}

/// Names in the target, if that is a folder.
fn names_in(plan: &Plan, built: &Built) -> Vec<std::ffi::OsString> {
    let is_folder = plan.extent(plan.target).is_none();
    let entries = is_folder.then(|| std::fs::read_dir(built.path(plan.target)));
    let mut names: Vec<_> = entries
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != RESULTS)
        .collect();
    names.sort_unstable();
    names
}

impl Outcome {
    /// Prints everything about a stack that failed.
    pub fn warn(&self, plan: &Plan) {
        for (id, step) in plan.all() {
            let mark = if id == plan.target { " <- target" } else { "" };
            warn(&format!("    {id}: {step:?}{mark}"));
        }
        let names = oracle::names(plan);
        warn(&format!(
            "    {:?} {names:?}, {:?}",
            plan.consent, plan.view
        ));
        warn(&format!("    to do: {:?}", self.verdict));
        warn(&format!("    done: exit code {:?}", self.code));
        // Only the output of a refused or failed run explains a fault.
        let told = self
            .text
            .lines()
            .filter(|line| !line.is_empty() && self.code != Some(0));
        for line in told {
            warn(&format!("    | {line}"));
        }
        for fault in &self.faults {
            warn(&format!("    fault: {fault}"));
        }
    }
}
