//! The answer to "is this storage good enough for ...".

mod data;

use iolab_analysis::analysed_run::AnswerBasis;
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::doubt::DoubtKind;
use iolab_analysis::fitness::{Answer, CellAnswer, Judged, ReasonedAnswer, UnseenStalls};
use iolab_analysis::trial_values::distinct;
use iolab_record::{Asked, Fit, TargetKind};
use iolab_workload::names::all_of;
use iolab_workload::service_level::{Bound, ServiceLevel};
use iolab_workload::trial_description::requests_of_cell;
use iolab_workload::units::{
    format_bytes, format_duration, format_ns, rough_duration, significant,
};
use serde_json::json;
use std::time::Duration;

pub(crate) use data::FitDocument;
use iolab_report::answer::{AskedRun, Given, LEVELS};
use iolab_report::block::{ShownAnswer, ToDo};
use iolab_report::doubt;
use iolab_report::layout::Column;
use iolab_report::slo::{amount, answer, in_line, level_columns, stalls, why};
use iolab_workload::escape_control::escape_control;

/// Share of the requested load from which it counts as made, since trials end a little early or late.
const LOADED_AS_ASKED: f64 = 0.9;

/// Length of a load in whole seconds, since trials last a little longer than requested.
fn load_in_words(load: Duration) -> String {
    match load.as_secs() {
        0 => format_ns(load.as_nanos() as f64),
        _ => rough_duration(Duration::from_secs_f64(load.as_secs_f64().round())),
    }
}

/// Length of a load that uses up most burst credits and write caches.
const LONG: Duration = Duration::from_mins(10);

/// The run of a workload.
#[derive(Debug)]
struct WorkloadRun<'a> {
    run: AskedRun<'a>,
    fit: &'a Fit,
    /// Answer for each level, in the order of the requirement, with doubts.
    found: CellAnswer,
    /// Whether the whole workload was measured.
    is_complete: bool,
}

/// The whole answer.
struct Fitness<'a> {
    /// The requirement.
    fit: &'a Fit,
    /// The question, one line.
    question: &'a str,
    /// The target.
    target: &'a str,
    /// Each workload in the order of the requirement, with its run; `None` if no run file was given.
    found: Vec<(&'a str, Option<WorkloadRun<'a>>)>,
}

impl<'a> WorkloadRun<'a> {
    /// The run, if its question is about a requirement.
    fn of(run: AskedRun<'a>) -> Option<Self> {
        let (Asked::Fit(fit), AnswerBasis::Cells(cells)) = (&run.question.of, &run.answer.found)
        else {
            return None;
        };
        Some(Self {
            fit,
            // A workload has one cell.
            found: cells.first().cloned().unwrap_or_default(),
            is_complete: run.answer.is_complete(),
            run,
        })
    }

    /// Whether it belongs to one answer with the runs of this requirement.
    fn is_of(&self, fit: &Fit) -> bool {
        (&self.fit.id, &self.fit.requirement, &self.fit.workloads)
            == (&fit.id, &fit.requirement, &fit.workloads)
    }

    /// Description of its load.
    fn ran(&self) -> String {
        let cell = self.run.record.cells.first();
        cell.map_or_else(String::new, |cell| requests_of_cell(&cell.spec))
    }

    /// Bytes that its trials wrote to storage; a model stores none.
    fn written_bytes(&self) -> u64 {
        if self.run.record.run.target_kind == TargetKind::Model {
            return 0;
        }
        let samples = self.run.record.samples.iter();
        let written = samples.map(|sample| sample.operations.write.bytes);
        written.fold(0, u64::saturating_add)
    }

    /// The answer for all of its levels together; an incomplete run has none.
    fn whole(&self) -> ReasonedAnswer {
        match self.is_complete {
            true => self.found.reasoned(),
            false => ReasonedAnswer::CannotTell(vec![DoubtKind::Unfinished]),
        }
    }

    /// Advice on satisfying a level that fails.
    fn remedy(&self, level: &ServiceLevel) -> &str {
        let own = self
            .run
            .question
            .needs
            .iter()
            .find(|need| need.level == *level);
        own.map_or("", |need| need.remedy.as_str())
    }

    /// Description of the load that was run: `wal: 2300-byte sequential writes, each with fdatasync, for 30 s;
    /// 374 MiB written`.
    fn summary(&self) -> String {
        let load = load_in_words(self.load());
        let written = match self.written_bytes() {
            0 => String::new(),
            bytes => format!("; {} written", format_bytes(bytes as f64)),
        };
        format!(
            "{}: {}, for {load}{written}.",
            self.fit.workload,
            self.ran()
        )
    }

    /// Time under load.
    fn load(&self) -> Duration {
        Duration::from_nanos(self.found.load_ns)
    }

    /// Whether its run is done, and loaded the storage for less than requested.
    fn is_short(&self) -> bool {
        self.is_complete && self.load() < self.fit.hold.mul_f64(LOADED_AS_ASKED)
    }
}

impl<'a> Fitness<'a> {
    /// The answers to requirements, from the runs of their workloads.
    fn all(runs: Vec<AskedRun<'a>>) -> Vec<Self> {
        let mut runs: Vec<WorkloadRun<'_>> = runs.into_iter().filter_map(WorkloadRun::of).collect();
        let mut all = Vec::new();
        while let Some(first) = runs.first().map(|run| run.fit) {
            let (own, others) = runs.into_iter().partition(|run| run.is_of(first));
            all.push(Self::of(first, own));
            runs = others;
        }
        all
    }

    /// The answer from the runs of a requirement, at least one.
    fn of(fit: &'a Fit, mut runs: Vec<WorkloadRun<'a>>) -> Self {
        let record = runs[0].run.record;
        let mut found = Vec::new();
        for name in distinct(&fit.workloads) {
            let own: Vec<_> = runs
                .extract_if(.., |run| run.fit.workload == *name)
                .collect();
            if own.is_empty() {
                found.push((name.as_str(), None));
            }
            found.extend(own.into_iter().map(|run| (name.as_str(), Some(run))));
        }
        Self {
            fit,
            question: &record.experiment.question,
            target: &record.run.target,
            found,
        }
    }

    /// The runs that were given.
    fn runs(&self) -> impl Iterator<Item = &WorkloadRun<'a>> {
        self.found.iter().filter_map(|(_, run)| run.as_ref())
    }

    /// The answer for all levels together.
    fn answer(&self) -> Answer {
        self.reasoned().answer()
    }

    fn reasoned(&self) -> ReasonedAnswer {
        let missing = || ReasonedAnswer::CannotTell(vec![DoubtKind::NoRunFile]);
        let each = self.found.iter().map(|(_, run)| run.as_ref());
        ReasonedAnswer::merge(each.map(|run| run.map_or_else(missing, WorkloadRun::whole)))
    }

    /// The answer with its text.
    fn given(&self) -> Given {
        let shown = ShownAnswer::new(
            (
                vec![format!("{}.", self.sentence())],
                Some(self.question.to_owned()),
            ),
            &self.to_do(),
            (LEVELS, self.columns()),
            self.remarks(),
        );
        Given {
            answer: self.answer(),
            shown,
            document: Some(json!(FitDocument::of(self))),
        }
    }

    /// The answer in one line.
    fn sentence(&self) -> String {
        format!(
            "{} on {}: {}",
            escape_control(&self.fit.requirement),
            escape_control(self.target),
            in_line(&self.reasoned())
        )
    }

    /// Steps that a user has to take for a complete measurement. They decide whether there is an answer, so no
    /// text leaves them out.
    fn to_do(&self) -> Vec<ToDo> {
        let begun = self.runs().filter(|run| !run.is_complete);
        let begun: Vec<&str> = begun.map(|run| run.fit.workload.as_str()).collect();
        let missing = self.found.iter().filter(|(_, run)| run.is_none());
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        let mut all = Vec::new();
        if !begun.is_empty() {
            let are = match begun.len() {
                1 => "the run is",
                _ => "the runs are",
            };
            let open = self.runs().filter(|own| !own.is_complete);
            let open = open.map(|own| (own.run.record, own.run.file.as_str()));
            let how = ToDo::to_finish(begun.len(), command_to_finish(open));
            all.push(ToDo {
                words: format!("{}: {are} not complete. {}", all_of(&begun), how.words),
                ..how
            });
        }
        if !missing.is_empty() {
            let are = match missing.len() {
                1 => "its run file is",
                _ => "their run files are",
            };
            all.push(ToDo {
                words: format!(
                    "{}: {are} not given; give all run files of one iolab fit together.",
                    all_of(&missing)
                ),
                command: None,
            });
        }
        all
    }

    /// Remarks on the load that was run, on the limits of the answer, and on reasons for another answer than yes. Remarks that
    /// decide the answer come first.
    fn remarks(&self) -> Vec<String> {
        let [decisive, further] = self.reasons();
        let ran = self.runs().map(WorkloadRun::summary);
        let remarks = decisive.into_iter().chain(ran).chain(further);
        remarks.chain(self.limits()).collect()
    }

    fn columns(&self) -> Vec<Column> {
        let rows = self.runs().flat_map(|run| {
            let levels = run.found.levels.iter();
            levels.map(move |level| {
                let answer = match run.is_complete {
                    true => answer(level),
                    false => Answer::CannotTell.to_string(),
                };
                (run.fit.workload.as_str(), level, answer)
            })
        });
        // Workloads may have the same levels.
        let dispensable = if self.found.len() > 1 { 0 } else { 3 };
        level_columns(("workload", dispensable), &rows.collect::<Vec<_>>())
    }

    /// Reasons for a no or an unknown answer, and changes that would help: those without which the answer would be another
    /// one, and others.
    fn reasons(&self) -> [Vec<String>; 2] {
        let mut reasons = [Vec::new(), Vec::new()];
        let whole = self.answer();
        let mut add = |decides: bool, text: String| reasons[usize::from(!decides)].push(text);
        for of in self.runs() {
            let (workload, found, is_whole) = (&of.fit.workload, &of.found, of.is_complete);
            let doubts = found.reasons();
            for doubt in &doubts {
                let mut levels = found.levels.iter();
                let turns = levels.any(|level| level.turned_by.contains(doubt));
                let text = doubt::sentences(doubt, &found.doubts);
                add(
                    is_whole && turns && whole == Answer::CannotTell,
                    format!("{workload}: {text}"),
                );
            }
            for answered in &found.levels {
                let (judged, level) = (&answered.judged, &answered.judged.level);
                if let Some(change) = &judged.change {
                    let text = format!(
                        "{workload} {level}: after {} of load and {} the median over trials went from {} to {} and stayed.",
                        rough_duration(Duration::from_nanos(change.after_ns)),
                        format_bytes(change.after_bytes as f64),
                        amount(level, change.from),
                        amount(level, change.to),
                    );
                    add(false, text);
                }
                if !is_whole {
                    continue;
                }
                let (answer, why) = (answered.answer(), why(judged));
                let limit = found.doubts.limit.as_ref().map(doubt::limit);
                let because = match (judged.answer, answer, limit) {
                    (Answer::No, Answer::No, limit) => {
                        let help = limit.unwrap_or_else(|| of.remedy(level).to_owned());
                        format!("{}; {help}", gap(judged))
                    }
                    (Answer::CannotTell, _, Some(limit)) => format!("{why}; {limit}"),
                    (Answer::CannotTell, ..) if !doubts.is_empty() => why.to_owned(),
                    (Answer::CannotTell, ..) if judged.can_be_decided() => {
                        let longer = longer(self.fit.hold);
                        format!("{why}; a longer load may settle it (--for {longer})")
                    }
                    (Answer::CannotTell, ..) => {
                        format!("{why}; a longer load does not decide it, only another level")
                    }
                    // The doubts above explain it.
                    (Answer::Yes | Answer::No, ..) => continue,
                };
                add(answer == whole, format!("{workload} {level}: {because}."));
            }
        }
        reasons
    }

    /// Limits that the requirement states, and loads that were shorter than requested.
    fn limits_of_load(&self) -> Vec<String> {
        let short = self.runs().filter(|run| run.is_short()).map(|run| {
            format!(
                "{}: {} of load instead of {}, because trials ended with their region before their time. A larger region in the requirement makes them longer.",
                run.fit.workload,
                load_in_words(run.load()),
                load_in_words(run.fit.hold),
            )
        });
        self.fit.limits.iter().cloned().chain(short).collect()
    }

    fn limits(&self) -> Vec<String> {
        let asked = self.fit.hold;
        let loads = self.runs().map(|of| of.found.load_ns);
        let shortest = loads.filter(|load| *load > 0).min();
        let hold = shortest.map_or(asked, Duration::from_nanos);
        // If trials end early, more time does not lengthen their load.
        let longer = match asked < LONG && !self.runs().any(WorkloadRun::is_short) {
            true => " (--for 10min)",
            false => "",
        };
        let unseen = self.runs().filter_map(|run| run.found.unseen_stalls());
        let unseen = UnseenStalls::most_frequent(unseen).filter(|_| self.answer() == Answer::Yes);
        let stalls = unseen.map_or_else(String::new, |unseen| format!("; {}", stalls(unseen)));
        let mut texts = self.limits_of_load();
        texts.push(format!(
            "Not covered: {}; loads longer than {} per workload, which use up burst credits and caches{longer}{stalls}.",
            self.fit.not,
            load_in_words(hold),
        ));
        texts.push(format!(
            "Sources of the levels: iolab show {}",
            self.fit.requirement
        ));
        texts
    }
}

/// The answers of these runs in words.
pub(crate) fn answers(runs: Vec<AskedRun<'_>>) -> Vec<Given> {
    let all = Fitness::all(runs);
    all.iter().map(Fitness::given).collect()
}

/// The distance of the result from the bound.
fn gap(judged: &Judged) -> String {
    let limit = judged.level.limit();
    let estimate = judged.estimate.unwrap_or(f64::NAN);
    match judged.level.bound {
        Bound::Below(_) => format!("{} times the level", significant(estimate / limit)),
        Bound::Above(_) => format!("{} of the level", significant(estimate / limit)),
    }
}

/// Advice on a longer load: four times the length halves an interval.
fn longer(hold: Duration) -> String {
    let whole = Duration::from_secs(hold.as_secs().max(1));
    format_duration(whole.saturating_mul(4))
}
