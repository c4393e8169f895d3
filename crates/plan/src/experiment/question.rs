//! The question of an experiment after a change: replaced if the change makes the experiment ask something else.

use super::Experiment;
use super::group_settings::GroupSetting;
use crate::cells::cells;
use iolab_workload::names::all_of;
use iolab_workload::response::Response;
use iolab_workload::trial_description;

/// Most kinds of access that a question names.
const NAMED_MAX: usize = 4;

/// The subject of a question.
#[derive(Debug, PartialEq)]
struct Subject {
    /// The distinct kinds of access of each group, or of all workers, without a name, if there are no groups.
    parts: Vec<Part>,
    /// The settings that vary.
    factors: Vec<GroupSetting>,
}

/// Workers that do the same, in all cells.
#[derive(Debug, PartialEq)]
struct Part {
    /// Group of the workers; `None` for all workers.
    group: Option<String>,
    /// The distinct kinds of access.
    accesses: Vec<String>,
}

impl Part {
    fn accesses(&self) -> String {
        match self.accesses.len() {
            0..=NAMED_MAX => all_of(&self.accesses),
            _ => "these accesses".to_owned(),
        }
    }

    /// `reader (random reads)`.
    fn described(&self) -> String {
        match &self.group {
            Some(group) => format!("{group} ({})", self.accesses()),
            None => self.accesses(),
        }
    }
}

impl Subject {
    /// `None` for programs and invalid plans.
    fn of(experiment: &Experiment) -> Option<Self> {
        if experiment.runs_programs() {
            return None;
        }
        let mut parts: Vec<Part> = Vec::new();
        for cell in cells(experiment).ok()? {
            let groups = cell.spec.groups.iter();
            let mut all: Vec<_> = groups
                .map(|group| (Some(&group.name), &group.spec.trial))
                .collect();
            if all.is_empty() {
                all.push((None, &cell.spec.trial));
            }
            for (group, trial) in all {
                let words = trial_description::in_words(trial);
                match parts.iter_mut().find(|part| part.group.as_ref() == group) {
                    Some(part) if part.accesses.contains(&words) => {}
                    Some(part) => part.accesses.push(words),
                    None => parts.push(Part {
                        group: group.cloned(),
                        accesses: vec![words],
                    }),
                }
            }
        }
        let factors = experiment.factors.iter().map(|factor| &factor.of);
        Some(Self {
            parts,
            // The choice of a tool does not change the question.
            factors: factors.filter(|of| !of.is("tool")).cloned().collect(),
        })
    }
}

impl Experiment {
    /// Replaces the question if accesses or factors differ from `before`.
    pub(crate) fn follow(&mut self, before: &Experiment) {
        let (was, is) = (Subject::of(before), Subject::of(self));
        if let Some(subject) = is.filter(|is| Some(is) != was.as_ref()) {
            self.question = question(self.response, self.response_group.as_deref(), &subject);
        }
    }
}

/// The question about the response of a group, or of all of them.
fn question(response: Response, group: Option<&str>, subject: &Subject) -> String {
    let of_group = |part: &&Part| group.is_some() && part.group.as_deref() == group;
    let (asked, others): (Vec<&Part>, Vec<&Part>) = match group {
        Some(_) => subject.parts.iter().partition(of_group),
        None => (subject.parts.iter().collect(), Vec::new()),
    };
    let described = |parts: &[&Part]| {
        let parts: Vec<String> = parts.iter().map(|part| part.described()).collect();
        all_of(&parts)
    };
    let accesses = match others.as_slice() {
        [] => described(&asked),
        others => format!("{} alongside {}", described(&asked), described(others)),
    };
    let is_one = match subject.parts.as_slice() {
        [only] => only.accesses.len() == 1,
        _ => true,
    };
    // The kinds of access already name these, if all workers have them.
    let told = ["workload", "pattern", "read_percent", "sync"];
    let varied = subject.factors.iter();
    let varied: Vec<String> = varied
        .filter(|of| is_one || !told.contains(&of.setting.name))
        .map(factor)
        .collect();
    match varied.as_slice() {
        [] if !is_one => {
            format!("How does the {response} differ between {accesses}?")
        }
        [] => format!("What is the {response} of {accesses}?"),
        varied => format!(
            "How does the {response} of {accesses} depend on {}?",
            all_of(varied)
        ),
    }
}

fn factor(of: &GroupSetting) -> String {
    if of.group.is_some() {
        return of.to_string();
    }
    match of.setting.name {
        "bs" => "the I/O size".to_owned(),
        "threads" => "the number of threads".to_owned(),
        "depth" => "the queue depth".to_owned(),
        "skip" => "the bytes skipped".to_owned(),
        "rate" => "the load".to_owned(),
        "sync" => "the sync policy".to_owned(),
        "cache" => "the cache state".to_owned(),
        "region" => "the size of the region".to_owned(),
        name => name.to_owned(),
    }
}
