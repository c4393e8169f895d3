//! `iolab fit`: whether storage is good enough for a purpose: yes, no, or cannot tell.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::requirement::{BUILTIN_REQUIREMENTS, RequiredWorkload, Requirement};
use clap::Args;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::fitness::Answer;
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::options::{ConsentOption, LogOptions, SEED_MAX, new_seed};
use iolab_command::output::{Results, note};
use iolab_command::output_format::{TextOrJson, check_folder};
use iolab_command::run_files::{answers, read_run, show};
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::forecast::Forecast;
use iolab_record::{Asked, Fit as FitOf, Question, digest};
use iolab_report::forecast;
use iolab_runner::campaign::{Opened, Program, Site, Terms};
use iolab_runner::open_virtual;
use iolab_runner::peers::{PeerList, overhead};
use iolab_workload::Result;
use iolab_workload::escape_control::shell_words;
use iolab_workload::trial_description::requests_in_words;
use iolab_workload::units::{parse_positive_duration, rough_duration};

const FIT_HELP: &str = "\
WHAT is a set of workloads, each with the levels it requires. 'iolab show etcd' prints \
one with the source and the wording of each level. To use your own levels, copy and \
edit it, and give your file as WHAT.

A level holds when the 95 % interval of the measured quantity is on the good side of \
the limit, 5 % away from it. The interval includes the differences between trials of \
1 s. If the quantity changes permanently during the load, the level must hold before \
and after the change.

The answer is 'cannot tell', with the reason, if the evidence could reverse it: a yes on \
memory, the page cache, an unknown device or writes that may not be durable; a no while \
other programs used the device or the CPUs. If an I/O limit of the container was \
reached, a no stands and names that limit as its cause.

Exit codes: 0 yes; 4 no; 5 cannot tell; 1, 2, 3 and 130 as for the other commands.";

#[derive(Debug, Args)]
#[command(after_help = FIT_HELP)]
pub(crate) struct Fit {
    /// Name of a built-in requirement ('iolab list'), or a TOML file
    #[arg(value_name = "WHAT")]
    pub(crate) requirement: String,
    /// Directory, file, block device, or a model of a disk: model:NAME ('iolab model list')
    #[arg(default_value = ".")]
    pub(crate) target: PathBuf,
    /// Change a parameter of the requirement (listed by iolab show, for example 'iolab show kv-cache')
    #[arg(long = "set", value_name = "NAME=NUMBER")]
    pub(crate) parameters: Vec<String>,
    /// Duration of the load, per workload; a long load exhausts burst credits and write caches
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration)]
    pub(crate) hold: Option<Duration>,
    /// Folder for the run files
    #[arg(short, long, value_name = "FOLDER", default_value = "iolab-results")]
    pub(crate) output: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
    /// Print what would run (workloads, time, bytes written, free space) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of offsets and data; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// Parts of the program by which a command measures several runs.
#[derive(Clone, Copy)]
pub struct Measuring {
    /// The program, as a campaign needs it.
    pub program: Program,
    /// Refuses the command of this name as one of several processes, unless it only plans.
    pub alone: fn(bool, &str) -> Outcome,
    /// Prints the forecast of plans at a site, with further descriptions.
    pub foresee: fn(&Site, &[Plan], &[String]) -> Outcome,
    /// Measures plans with their questions and a seed, under a title in a folder, after these announcements; returns the run
    /// files, and the interrupt of the user.
    pub measure: MeasureAsked,
}

/// The type of [`Measuring::measure`].
pub type MeasureAsked = fn(
    Opened,
    (Vec<FittedPlan>, Vec<Question>),
    u64,
    (&str, &Path),
    &[String],
) -> Outcome<(Vec<PathBuf>, Option<Failure>)>;

/// Measures the workloads of the requirement, and answers.
pub(crate) fn fit(options: &Fit, lists: &Lists, by: Measuring) -> Outcome {
    (by.alone)(options.dry_run, "fit")?;
    lists.check_kind(&options.requirement, "a requirement")?;
    check_folder(&options.output)?;
    let mut requirement = Requirement::find(&options.requirement, &options.parameters)?;
    if let Some(hold) = options.hold {
        requirement.hold_for(hold)?;
    }
    let targets = vec![options.target.clone()];
    let watch = by.program.watch(&targets);
    let model = open_virtual(by.program.schemes, &options.target, None)?;
    let terms = Terms {
        consent: options.consent.consent(),
        ..Terms::strict(by.program)
    };
    let site = Site::of(targets, model, watch, terms);
    let derived = requirement.workloads.iter().flat_map(|own| &own.derived);
    let mut limits: Vec<String> = derived.map(|text| format!("{text}.")).collect();
    let in_place = !options.target.is_dir() && requirement.write_in_place()?;
    if in_place && site.model.is_none() {
        limits.push(
            "Not covered: the cost of space allocation for a growing log, because TARGET is overwritten in place. A directory as TARGET includes it."
                .to_owned(),
        );
    }
    if let Some(disk) = &site.model {
        let grown = requirement.use_bare_disk(disk.block())?;
        let note = || format!("A model takes whole blocks: {}.", grown.join("; "));
        limits.extend((!grown.is_empty()).then(note));
    }
    let mut names = BUILTIN_REQUIREMENTS.iter().map(|(name, _)| *name);
    if site.model.is_none() && names.any(|name| name == options.requirement) {
        for workload in &mut requirement.workloads {
            let changes = iolab_runner::adapt_to_system(&mut workload.experiment, &|_| false)?;
            limits.extend(changes.into_iter().map(|text| format!("{text}.")));
        }
    }
    let mut plans = Vec::new();
    for workload in &requirement.workloads {
        let (plan, left_out) = site.plan(workload.experiment.clone(), &|_| false)?;
        limits.extend(left_out.map(|text| format!("{text}.")));
        plans.push(plan);
    }
    let peers = site.model.is_none().then_some(by.program.peers);
    if options.dry_run {
        let announced = announced(&requirement, &plans, peers)?;
        return (by.foresee)(&site, &plans, &announced);
    }
    let (opened, plans) = site.open(plans)?;
    // Describes the plans that were cut to the free space; the plans above ask for more.
    let announced = announced(&requirement, plans.iter().map(|plan| &**plan), peers)?;
    let seed = options.seed.unwrap_or_else(new_seed);
    let asked = asked(&requirement, limits, seed);
    let title = format!(
        "iolab fit {} {}",
        options.requirement,
        options.target.display()
    );
    let place = (title.as_str(), options.output.as_path());
    let (files, failure) = (by.measure)(opened, (plans, asked), seed, place, &announced)?;
    let mut to = Results::default();
    let answer = match options.format {
        TextOrJson::Text => show(&files, false, lists, &mut to)?,
        TextOrJson::Json => print_json(&files, lists, &mut to)?,
    };
    let names = files.iter().map(|file| file.display().to_string());
    let names: Vec<String> = names.collect();
    note(format_args!("\nrun files: {}", names.join(", ")));
    to.end(shell_words(&files))?;
    concluded(failure, answer)
}

/// Prints the answers of runs as JSON, and returns their common answer.
fn print_json(files: &[PathBuf], lists: &Lists, to: &mut Results) -> Outcome<Option<Answer>> {
    let runs = files.iter().map(|file| read_run(file));
    let runs: Vec<AnalysedRun> = runs.collect::<Result<_>>()?;
    let answers = answers(files.iter().map(PathBuf::as_path).zip(&runs), lists);
    for document in answers.documents() {
        writeln!(to, "{document:#}")?;
    }
    to.flush()?;
    Ok(answers.answer())
}

/// The question of each workload's run.
fn asked(requirement: &Requirement, limits: Vec<String>, seed: u64) -> Vec<Question> {
    let workloads = requirement.workloads.iter();
    let names: Vec<String> = workloads.clone().map(|w| w.name.clone()).collect();
    let id = digest(format!("{} {seed} {}", new_seed(), requirement.name).bytes());
    let question = |workload: &RequiredWorkload| Question {
        of: Asked::Fit(FitOf {
            id: id.clone(),
            requirement: requirement.name.clone(),
            not: requirement.not.clone(),
            hold: requirement.hold,
            limits: limits.clone(),
            workloads: names.clone(),
            workload: workload.name.clone(),
        }),
        needs: workload.levels.clone(),
    };
    workloads.map(question).collect()
}

/// Descriptions of the work of each workload, and of its writes unless the target is a model, which has no peers.
fn announced<'a>(
    requirement: &Requirement,
    plans: impl IntoIterator<Item = &'a Plan>,
    peers: Option<PeerList>,
) -> Result<Vec<String>> {
    let of = |(workload, plan): (&RequiredWorkload, &Plan)| {
        let does = requests_in_words(&plan.experiment().base()?.trial);
        let hold = rough_duration(requirement.hold);
        let time = match peers {
            None => format!("{hold} of virtual time"),
            Some(peers) => {
                let written = forecast::written(&Forecast::of(plan, &overhead(peers)));
                format!("{hold}; writes {written}")
            }
        };
        Ok(format!(
            "{} {}: {does}, for {time}",
            requirement.name, workload.name
        ))
    };
    requirement.workloads.iter().zip(plans).map(of).collect()
}
