//! iolab-doctor: properties of a target and a machine, the trust they deserve, and recommended settings. Facts
//! are collected, and pure rules turn them into findings. Reports state what is in effect, never what was
//! requested.
//!
//! Files to begin with: `facts.rs` and `probes.rs` (facts, and those that need a trial), `rules/` (one function per
//! rule), `lib.rs` (the command, and checks right before a run).

mod facts;
mod probes;
mod rules;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use iolab_command::failure::Outcome;
use iolab_command::output_format::TextOrJson;
use iolab_command::signals::on_signals;
use iolab_command::{Command, Lists, output};
use iolab_host::clock::Clock;
use iolab_record::environment::Environment;
use iolab_report::layout::{WIDTH_MIN, paragraph};
use iolab_report::rows::json_object;
use iolab_runner::campaign::Program;
use iolab_runner::preflight::{Finding, Preflight, Remark, Severity, Topic};
use iolab_runner::{environment, open_virtual};
use iolab_storage::Target;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState};
use iolab_workload::{Error, Result};
use serde_json::{Map, Value, json};

pub use facts::{Attempt, Direct, Facts, Space, TargetContent, TargetFacts, TimeStamps, Transfer};

/// The rows of this instrument.
pub fn lists(program: Program) -> Lists {
    Lists {
        commands: vec![Command::new(
            "doctor",
            "Check a target and this machine: what to trust, what to set",
            move |options, _| doctor(options, program),
        )],
        ..Lists::default()
    }
}

/// Examines a target: reads the system's information, and probes what it only promises. Writes to a scratch
/// file in a directory, and nowhere else. Takes about a second.
///
/// # Errors
/// As [`Target::open`], when the target cannot be used at all; of kind [`Failed`](iolab_workload::Kind::Failed)
/// when the scratch file cannot be filled; of kind [`Interrupted`](iolab_workload::Kind::Interrupted) soon
/// after `stop` is raised.
pub fn examine(named: &Path, clock: &Clock, stop: &AtomicBool) -> Result<Diagnosis> {
    let target = Target::open(named, &probes::need(named))?;
    let facts = probes::everything(named, &target, clock, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::interrupted());
    }
    let diagnosis = Diagnosis {
        target: facts.place.named.clone(),
        kind: facts.place.kind_name(),
        findings: diagnose(&facts),
        environment: environment::capture(&target, clock),
    };
    target.remove()?;
    Ok(diagnosis)
}

/// Findings of the rules on facts, in the order of their topics.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::findings(facts).collect();
    findings.sort_by_key(|finding| finding.topic);
    findings
}

/// All findings about one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The target as the user wrote it.
    pub target: String,
    /// `directory`, `file`, `block-device`, `char-device`.
    pub kind: &'static str,
    /// The findings, ordered by topic.
    pub findings: Vec<Finding>,
    /// Facts about machine, kernel, file system and device, as in run files.
    pub environment: Environment,
}

impl Diagnosis {
    /// Number of findings with this severity.
    pub fn count(&self, severity: Severity) -> usize {
        let of_it = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(of_it).count()
    }
}

/// Version of the JSON object; new fields do not change it.
const SCHEMA: u32 = 1;
/// Columns before the text: indent, longest severity, gap.
const INDENT: usize = 2;
const LABEL: usize = "worth knowing".len() + 2;

const DOCTOR_HELP: &str = "\
Each finding is 'fine', 'worth knowing' (it affects results) or 'must fix' (results \
would be wrong or mislabelled). doctor tries direct I/O and the backends: in a directory \
with a small scratch file, on files and devices by reading only. The exit code is 0 \
for any findings, unless the target cannot be used. For scripts:

  iolab doctor --format json | jq -e '.must_fix == 0'";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
struct Arguments {
    /// Directory, file or block device
    #[arg(default_value = ".")]
    target: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

/// Examines the target and writes the findings to stdout. Succeeds also if something must be fixed.
fn doctor(options: &Arguments, program: Program) -> Outcome {
    if let Some(disk) = open_virtual(program.schemes, &options.target, None)? {
        let refused = Error::usage(format!(
            "{} is a model: doctor examines real storage",
            disk.name()
        ));
        return Err(refused
            .hint("give a directory, file or block device; 'iolab model show NAME' prints a model")
            .into());
    }
    let targets = [options.target.clone()];
    let watch = program.watch(&targets);
    // Before the scratch file exists, since signals must not leave the file.
    let stop = on_signals()?;
    program.restore_leftovers();
    if let Some(watch) = &watch {
        watch.opens(&targets);
    }
    let diagnosis = examine(&options.target, &Clock::calibrate(), &stop)?;
    drop(watch);
    let coloured = output::is_coloured() && options.format == TextOrJson::Text;
    let mut to = match coloured {
        true => output::open_raw(None)?,
        false => output::open(None)?,
    };
    match options.format {
        TextOrJson::Json => json(&diagnosis, &mut to)?,
        TextOrJson::Text => write!(to, "{}", text(&diagnosis, output::style().width, coloured))?,
    }
    Ok(to.flush()?)
}

/// The findings by topic, for a terminal of `width` columns. Commands stay on one line, to be copied.
pub fn text(diagnosis: &Diagnosis, width: u16, colour: bool) -> String {
    let mut text = format!(
        "{} ({})\n",
        escape_control(&diagnosis.target),
        diagnosis.kind
    );
    let mut topic = None;
    for finding in &diagnosis.findings {
        if topic != Some(finding.topic) {
            topic = Some(finding.topic);
            text.push_str(&format!("\n{}\n", finding.topic));
        }
        push(&mut text, finding, width, colour);
    }
    let count = |severity| diagnosis.count(severity);
    text.push_str(&format!(
        "\n{} must fix, {} worth knowing, {} fine\n",
        count(Severity::MustFix),
        count(Severity::WorthKnowing),
        count(Severity::Fine)
    ));
    text
}

fn push(text: &mut String, finding: &Finding, width: u16, colour: bool) {
    let label = format!("{:<LABEL$}", finding.severity.to_string());
    let mark = format!("{:INDENT$}{label}", "");
    let lines = paragraph(&escape_control(&finding.what), &mark, width.max(WIDTH_MIN));
    let code = match finding.severity {
        Severity::Fine => "32",
        Severity::WorthKnowing => "33",
        Severity::MustFix => "1;31",
    };
    let coloured = format!("\x1b[{code}m{label}\x1b[0m");
    text.push_str(&match colour {
        true => lines.replacen(&label, &coloured, 1),
        false => lines,
    });
    if let Some(command) = &finding.remedy {
        let margin = " ".repeat(INDENT + LABEL);
        text.push_str(&format!("{margin}$ {}\n", escape_control(command)));
    }
}

/// Writes a JSON object with the findings, their number by severity, and the environment.
///
/// # Errors
///
/// Errors of `to`.
pub fn json(diagnosis: &Diagnosis, to: &mut dyn Write) -> io::Result<()> {
    let count = |severity| diagnosis.count(severity);
    let environment: Map<String, Value> = diagnosis
        .environment
        .iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    let whole = json!({
        "schema": SCHEMA,
        "target": diagnosis.target,
        "kind": diagnosis.kind,
        "must_fix": count(Severity::MustFix),
        "worth_knowing": count(Severity::WorthKnowing),
        "fine": count(Severity::Fine),
        "findings": diagnosis.findings,
        "environment": environment,
    });
    json_object(&whole, to)
}

/// Most remarks shown; the others are in the run file.
const SHOWN_MAX: usize = 4;

/// A short examination of target and machine before the first trial. Takes about a quarter of a second, or two seconds on slow
/// storage.
pub fn preflight(
    named: &Path,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
    direct: bool,
) -> Box<dyn Preflight> {
    let (facts, _) = probes::quick(named, target, clock, stop, direct);
    Box::new(facts)
}

impl Preflight for Facts {
    fn remarks(&self, cells: &[&CellSpec]) -> Vec<Remark> {
        let plan = Plan::of(cells);
        if !plan.does_io {
            return Vec::new();
        }
        let facts = Facts {
            region_bytes: plan.region,
            ..self.clone()
        };
        let mut findings = diagnose(&facts);
        findings.retain(|finding| finding.severity != Severity::Fine);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut room = SHOWN_MAX;
        findings
            .into_iter()
            .map(|finding| {
                let shown = room > 0 && plan.is_coloured_by(&finding);
                room -= usize::from(shown);
                Remark { finding, shown }
            })
            .collect()
    }
}

/// Properties of an experiment that matter for findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Plan {
    does_io: bool,
    runs_programs: bool,
    direct: bool,
    buffered: bool,
    reads: bool,
    writes: bool,
    region: u64,
}

impl Plan {
    fn of(cells: &[&CellSpec]) -> Self {
        let mut plan = Self::default();
        for cell in cells {
            let spec = &cell.trial;
            let programs = cell.runs_program();
            if spec.backend == Backend::Null && !programs {
                continue;
            }
            let direct = spec.cache == CacheState::Direct && !programs;
            plan.does_io = true;
            plan.runs_programs |= programs;
            plan.direct |= direct;
            plan.buffered |= !direct;
            plan.reads |= programs || spec.reads();
            plan.writes |= !programs && spec.writes();
            plan.region = plan.region.max(spec.region);
        }
        plan
    }

    /// Whether a finding changes this experiment's results, and is not a constant of the machine that its users
    /// already know.
    fn is_coloured_by(&self, finding: &Finding) -> bool {
        match (finding.topic, finding.rule) {
            // Opening the target has already reported that.
            (Topic::Target, "in-memory") => false,
            (Topic::Target, "mount-option") => self.writes,
            (Topic::Target, "overlay-out-of-reach") => self.writes && self.buffered,
            (Topic::Device, "in-memory" | "not-counted") => !self.runs_programs,
            (Topic::Device, "loop") => self.direct && finding.severity == Severity::MustFix,
            (Topic::Device, "heat") => true,
            (Topic::DirectIo, _) => self.direct && finding.severity == Severity::MustFix,
            (Topic::Data, "empty" | "zeros") => self.reads && !self.runs_programs,
            (Topic::Data, "compressed") => self.reads && finding.severity == Severity::MustFix,
            (Topic::Data, "shared") => self.writes,
            (Topic::Cache, "device-cache") => self.reads && !self.runs_programs,
            (Topic::Limits, "cpu" | "traffic") => true,
            (Topic::Limits, "memory") => self.buffered,
            (Topic::Load, _) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_host::cgroup::{self, IoLimit};
    use iolab_host::machine::Load;
    use iolab_host::processor::Processor;
    use iolab_storage::TargetKind;
    use iolab_workload::counters::Traffic;

    use super::TargetContent;
    use super::facts::Space;
    use super::*;

    fn cell(change: impl FnOnce(&mut CellSpec)) -> CellSpec {
        let mut cell = CellSpec::default();
        cell.trial.region = 1 << 30;
        change(&mut cell);
        cell
    }

    fn rules(facts: &Facts, cell: &CellSpec) -> (Vec<&'static str>, Vec<&'static str>) {
        let remarks = facts.remarks(&[cell]);
        let (shown, kept): (Vec<Remark>, Vec<Remark>) = remarks.into_iter().partition(|r| r.shown);
        let names = |list: Vec<Remark>| list.iter().map(|r| r.finding.rule).collect();
        (names(shown), names(kept))
    }

    fn busy() -> Facts {
        let mut facts = Facts {
            content: Some(TargetContent {
                looked_bytes: 100,
                empty_bytes: 50,
                length: Some(100),
                ..TargetContent::default()
            }),
            space: Some(Space {
                total: 1000,
                free: 900,
                room: 900,
            }),
            processor: Processor {
                governor: Some("powersave".to_owned()),
                present: Some(2),
                ..Processor::default()
            },
            load: Some(Load {
                memory_stall: Some(0.0),
                cpus_busy: Some(1.5),
                ..Load::default()
            }),
            ..Facts::default()
        };
        facts.place.kind = TargetKind::File;
        facts
    }

    #[test]
    fn only_what_colours_the_experiment_is_shown() {
        let (shown, kept) = rules(&busy(), &cell(|_| ()));
        assert_eq!(shown, ["empty", "processors"]);
        assert_eq!(kept, ["frequency"]);
        let (shown, _) = rules(&busy(), &cell(|c| c.trial.read_percent = 0));
        assert_eq!(shown, ["processors"]);
        // Without I/O, and on a quiet machine, there is nothing to colour.
        let null = cell(|c| c.trial.backend = Backend::Null);
        assert_eq!(busy().remarks(&[&null]), []);
        assert_eq!(Facts::default().remarks(&[&cell(|_| ())]), []);
    }

    #[test]
    fn few_remarks_are_shown_and_all_kept() {
        let mut facts = busy();
        facts.cgroup = cgroup::CgroupLimits {
            cpus: Some(1.0),
            memory_bytes: None,
            memory_left_bytes: None,
            io: vec![IoLimit {
                what: Traffic::ReadBytes,
                per_second: 1,
            }],
        };
        if let Some(load) = &mut facts.load {
            load.cpus_stolen = Some(1.0);
        }
        let remarks = facts.remarks(&[&cell(|_| ())]);
        assert_eq!(remarks.len(), 6);
        assert_eq!(remarks.iter().filter(|r| r.shown).count(), SHOWN_MAX);
        assert!(remarks[0].finding.severity == Severity::MustFix && remarks[0].shown);
        insta::assert_snapshot!(remarks[0].text(), @"50 B of 100 B (50 %) is a hole: it reads as zeros without any device; remedy: cp --sparse=never --reflink=never --no-clobber '' .full    # then measure the copy");
    }
}
