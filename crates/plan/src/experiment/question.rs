//! The question of an experiment after a change: replaced where the change makes the experiment ask something else.

use super::Experiment;
use crate::cells::cells;
use iolab_workload::response::Response;
use iolab_workload::trial_description;

/// Most kinds of access that a question names.
const NAMED_MAX: usize = 4;

/// What a question is about.
#[derive(Debug, PartialEq, Eq)]
struct Subject {
    /// The distinct kinds of access.
    accesses: Vec<String>,
    /// The settings that vary.
    factors: Vec<&'static str>,
}

impl Subject {
    /// `None` for programs, groups and invalid plans.
    fn of(experiment: &Experiment) -> Option<Self> {
        if experiment.runs_programs() || !experiment.groups.is_empty() {
            return None;
        }
        let mut accesses: Vec<String> = Vec::new();
        for cell in cells(experiment).ok()? {
            let words = trial_description::in_words(&cell.spec.trial);
            if !accesses.contains(&words) {
                accesses.push(words);
            }
        }
        let factors = experiment
            .factors
            .iter()
            .map(|factor| factor.of.setting.name);
        Some(Self {
            accesses,
            // The choice of a tool does not change the question.
            factors: factors.filter(|name| *name != "tool").collect(),
        })
    }
}

impl Experiment {
    /// Replaces the question where accesses or factors differ from those of `before`.
    pub(crate) fn follow(&mut self, before: &Experiment) {
        let (was, is) = (Subject::of(before), Subject::of(self));
        if let Some(subject) = is.filter(|is| Some(is) != was.as_ref()) {
            self.question = question(self.response, &subject);
        }
    }
}

fn question(response: Response, subject: &Subject) -> String {
    let accesses = match subject.accesses.len() {
        0..=NAMED_MAX => listed(&subject.accesses),
        _ => "these accesses".to_owned(),
    };
    // The kinds of access already name these.
    let told = ["workload", "pattern", "read_percent", "sync"];
    let varied = subject.factors.iter();
    let varied: Vec<String> = varied
        .filter(|name| subject.accesses.len() == 1 || !told.contains(name))
        .map(|name| factor(name))
        .collect();
    match varied.as_slice() {
        [] if subject.accesses.len() > 1 => {
            format!("How does the {response} differ between {accesses}?")
        }
        [] => format!("What is the {response} of {accesses}?"),
        varied => format!(
            "How does the {response} of {accesses} depend on {}?",
            listed(varied)
        ),
    }
}

fn factor(name: &str) -> String {
    match name {
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

/// `a, b and c`.
fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, sets: &[&str]) -> String {
        let mut experiment = Experiment::find(name).expect("a built-in experiment");
        for set in sets {
            experiment.apply_set(set).expect("a change");
        }
        experiment.question
    }

    #[test]
    fn a_question_stays_while_the_same_is_asked() {
        let own = Experiment::find("write-random").expect("built in").question;
        assert_eq!(
            asked("write-random", &["bs=4k,64k", "region=64M", "time=1s"]),
            own
        );
        assert_eq!(asked("write-random", &["tool=iolab,fio"]), own);
    }

    #[test]
    fn a_mix_is_not_called_durable_writes() {
        assert_eq!(
            asked("write-random", &["read_percent=70", "sync=none"]),
            "How does the throughput of random accesses (70 % reads, 30 % writes) depend on the I/O size?"
        );
        assert_eq!(
            asked("read-size", &["bs=4k", "threads=1,2,4"]),
            "How does the throughput of sequential reads depend on the number of threads?"
        );
        assert_eq!(
            asked("read-size", &["bs=4k"]),
            "What is the throughput of sequential reads?"
        );
        assert_eq!(
            asked("write-size", &["bs=4k", "sync=none,each"]),
            "How does the throughput differ between sequential writes and sequential durable writes?"
        );
    }
}
