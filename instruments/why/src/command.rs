//! `iolab why`: what causes a difference or a fall that a run shows, by measuring without each suspect.

use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::inquiry::{self, INQUIRY, ToExplain};
use crate::phenomena::{Unexplainable, Unpaired, phenomena, unpaired};
use crate::phenomenon::{Phenomenon, PhenomenonKind, Unclaimed};
use crate::signs::{changes_inside, leftover, overhead};
use crate::words::{self, unpaired as in_words};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, CellAnalysis, TRIALS_MIN};
use iolab_analysis::claim::{claims, is_answered, leaves_tails_open, remainders};
use iolab_analysis::fitness::Answer;
use iolab_engine::placement;
use iolab_host::chosen as in_force;
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::experiment::{Experiment, Inquiry};
use iolab_plan::precondition::Precondition;
use iolab_plan::suspect::{Leftover, MachineState, Sides, Suspect};
use iolab_record::environment::KEYS;
use iolab_record::targets::target_paths;
use iolab_record::{RunRecord, TargetKind};
use iolab_report::layout::paragraph;
use iolab_report::overview::Input;
use iolab_runfile::NewFile;
use iolab_runner::campaign::{Opened, Permission, Program, Region, Site, Terms};
use iolab_runner::{StopFlags, open_virtual};
use iolab_workload::escape_control::{escape_control, shell_word};
use iolab_workload::response::Response;
use iolab_workload::units::parse_positive_duration;
use iolab_workload::{Error, Result, usage_errors};

use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::options::{LogOptions, SEED_MAX, new_seed};
use iolab_command::output::{self, Results, note};
use iolab_command::run_files::read_run;

const WHY_HELP: &str = "\
A suspect is a mechanism that may cause the difference. iolab measures both sides again \
without each suspect, without all suspects, and without all but one, in the same random \
blocks. A suspect is a cause if at least half of the difference disappears without it; \
it is cleared if less than a quarter changes. A fall of throughput over time is explained \
like a difference: a load that ends before it against one that lasts beyond it. So are \
slow requests: the p99 of latency of a cell against its median.

Examples:
  iolab run read-size --set pattern=seq,rand -o order.iolab
  iolab why order.iolab --list
  iolab why order.iolab --budget 10min

Exit codes: 0 a verdict, or nothing to explain; 5 cannot tell; 1, 2, 3 and 130 as for \
the other commands.";

#[derive(Debug, Args)]
#[command(after_help = WHY_HELP)]
pub(crate) struct Why {
    /// Run file that shows the difference
    pub(crate) file: PathBuf,
    /// Difference to explain, by its number in --list [default: the first that can be explained]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) of: Option<usize>,
    /// List the differences, falls and slow requests of the run that can be explained, and what cannot; measure nothing
    #[arg(long, conflicts_with_all = ["of", "dry_run"])]
    pub(crate) list: bool,
    /// Suspects to try, and no others, by the names of --dry-run; of two or three all combinations are measured
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = suspects(), hide_possible_values = true)]
    pub(crate) suspects: Vec<&'static str>,
    /// Time for all trials together; a short budget tries fewer suspects
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = parse_positive_duration)]
    pub(crate) budget: Duration,
    /// Run file to write, or a folder for it; default: a new name in iolab-results/
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also try suspects that only a kernel setting removes (max_sectors_kb, scheduler, read_ahead_kb, transparent huge
    /// pages), as root: each setting is restored after its trial, and after a kill by the next run; also
    /// real-time threads, which can keep other programs from the CPUs
    #[arg(long)]
    pub(crate) change_system: bool,
    /// Print the plan (variants, trials, time, bytes written) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of the order of trials, the offsets and the data; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// The names of all suspects.
fn suspects() -> impl TypedValueParser<Value = &'static str> {
    let names = Suspect::all().iter().map(|suspect| suspect.name);
    PossibleValuesParser::new(names).try_map(|name| {
        let found = Suspect::find(&name).map(|suspect| suspect.name);
        found.ok_or("no suspect")
    })
}

/// Assumed time of a trial that ends by its bytes, if the time is unknown.
const TRIAL_TIME: Duration = Duration::from_secs(1);

/// Parts of the program by which a command measures a run.
#[derive(Clone, Copy)]
pub struct Measuring {
    /// The program, as a campaign needs it.
    pub program: Program,
    /// Refuses the command of this name as one of several processes, for this reason, unless it only plans.
    pub alone: fn(bool, &str, &str) -> Outcome,
    /// Prints the forecast of plans at a site, with further descriptions.
    pub foresee: fn(&Site, &[Plan], &[String]) -> Outcome,
    /// Checks the place of this many run files.
    pub check_output: fn(Option<&Path>, usize) -> Result<()>,
    /// The place of the run file of a run with this name.
    pub place_of: for<'a> fn(Option<&'a Path>, &'a str) -> NewFile<'a>,
    /// Measures a plan with a seed, under a title; returns the run file, and the interrupt of the user.
    pub measure: MeasureOne,
}

/// The type of [`Measuring::measure`].
pub type MeasureOne =
    fn((Opened, FittedPlan), NewFile<'_>, u64, &str) -> Outcome<(PathBuf, Option<Failure>)>;

/// Measures both sides of a difference without each suspect, and prints the findings.
pub(crate) fn why(options: &Why, by: Measuring) -> Outcome {
    let is_plan = options.dry_run || options.list;
    (by.alone)(is_plan, "why", "it explains a run of one process")?;
    let run = read_run(&options.file)?;
    let found = match phenomena(run.analysis()) {
        Ok(found) => found,
        Err(reason) => {
            say(&unexplainable(reason, &options.file))?;
            // A list can be empty.
            return match options.list {
                true => Ok(()),
                false => Err(Failure::CannotTell),
            };
        }
    };
    if options.list || found.is_empty() {
        let beside = unpaired(run.analysis());
        list(&run, (&found, &beside), &options.file)?;
        // Differences that too few trials cannot show are none that are not there.
        let is_open = !beside.is_empty() || leaves_cells_open(run.analysis());
        return match is_open && !options.list {
            true => Err(Failure::CannotTell),
            false => Ok(()),
        };
    }
    let (number, explanation) = chosen((&run, &found), options, by.program)?;
    let which = match found.len() {
        1 => String::new(),
        all if number > 1 && options.of.is_none() => {
            format!("Difference {number} of {all} (--list), the first that can be explained: ")
        }
        all => format!("Difference {number} of {all} (--list): "),
    };
    if let Some(said) = explanation.by_construction()? {
        return say(&(which + &said));
    }
    let experiment = explanation.experiment(options.budget, &options.suspects)?;
    let site = explanation.site(options.dry_run, Rc::default())?;
    let inquiry = experiment.inquiry.clone();
    let (plan, _) = site.plan(experiment, &|_| true)?;
    (by.check_output)(options.output.as_deref(), 1)?;
    let Some(inquiry) = inquiry.filter(|inquiry| inquiry.suspects().next().is_some()) else {
        match (found.len(), options.of) {
            (1, _) => {}
            (all, None) => note(format_args!(
                "note: none of the {all} differences of the run (--list) has a suspect to try; the first:"
            )),
            (all, Some(_)) => note(format_args!(
                "note: the run shows {all} differences (--list); --of NUMBER explains another"
            )),
        }
        return no_suspect(plan.experiment(), explanation.is_model());
    };
    let text = which + &words::plan(&inquiry);
    if options.dry_run {
        return (by.foresee)(&site, &[plan], &[text]);
    }
    announce(&site, &text);
    let (opened, plan) = site.open_one(plan)?;
    let place = (by.place_of)(options.output.as_deref(), INQUIRY);
    let seed = options.seed.unwrap_or_else(new_seed);
    let title = format!("iolab why {}", options.file.display());
    let (path, failure) = (by.measure)((opened, plan), place, seed, &title)?;
    let input = Input::new(path.clone(), read_run(&path)?);
    let claims = claims(&[input.run.analysis()]);
    let mut to = Results::default();
    let width = output::style().width;
    let answer = words::answer(&input, &claims, width);
    write!(to, "{answer}")?;
    to.flush()?;
    note(format_args!("\nrun file: {}", path.display()));
    if !remainders(input.run.analysis()).is_empty() {
        let file = shell_word(&path.to_string_lossy());
        note(format_args!("figure: iolab plot {file} -o why.svg"));
    }
    to.end(path.display())?;
    let answer = (!is_answered(&claims)).then_some(Answer::CannotTell);
    concluded(failure, answer)
}

/// Announces the measurement, and where it is made.
pub(crate) fn announce(site: &Site, text: &str) {
    note(format_args!("note: {}", escape_control(text)));
    if site.model.is_none() {
        let targets = site
            .targets
            .iter()
            .map(|target| target.display().to_string());
        let targets: Vec<String> = targets.collect();
        note(format_args!(
            "note: measures on {}, as the run file names it",
            escape_control(&targets.join(", "))
        ));
    }
}

/// Prints a paragraph.
fn say(text: &str) -> Outcome {
    let mut to = Results::default();
    let text = escape_control(text);
    write!(to, "{}", paragraph(&text, "", output::style().width))?;
    Ok(to.flush()?)
}

/// Prints the differences of a run, and its unpaired observations.
fn list(run: &AnalysedRun, (found, beside): (&[Phenomenon], &[Unpaired]), file: &Path) -> Outcome {
    if found.is_empty() && beside.is_empty() {
        return say(&nothing(run.analysis()));
    }
    let mut to = Results::default();
    for (number, phenomenon) in (1..).zip(found) {
        let unclaimed = match phenomenon.unclaimed {
            Some(Unclaimed::OtherSource) => "; the bytes of its sides came from different sources",
            Some(Unclaimed::Owed) => "; one side left its writes in a cache of the storage",
            Some(Unclaimed::Disturbed) => {
                "; disturbances during the run, or that it was suspended, could explain it"
            }
            None => "",
        };
        let text = words::phenomenon(run.analysis(), phenomenon) + unclaimed;
        let mark = format!("{number:>3}  ");
        let text = escape_control(&text);
        write!(to, "{}", paragraph(&text, &mark, output::style().width))?;
    }
    for one in beside {
        let text = in_words(run.analysis(), one, file);
        let text = escape_control(&text);
        write!(to, "{}", paragraph(&text, "", output::style().width))?;
    }
    Ok(to.flush()?)
}

/// The message that there is nothing to explain, or that more trials are needed to know.
fn nothing(run: &Analysis) -> String {
    if let [cell] = run.cells.as_slice() {
        if leaves_tails_open(cell) {
            return format!(
                "Cannot tell whether the single cell of the run has slow requests: that takes {TRIALS_MIN} undisturbed trials with latencies of one kind of request, enough for a p99 in each. No lasting fall of throughput was found in it."
            );
        }
        return "The run has a single cell, in which neither a lasting fall of throughput nor a long tail of latency was found: 'iolab why' explains these, or a difference between two cells. Measure several in one run, such as with --bs 4k,64k.".to_owned();
    }
    let shown = "the run shows no difference between two cells that 'iolab why' can explain, and no lasting fall of throughput was found in it.";
    match (with_few_trials(run).len(), run.cells.len()) {
        (0, _) => format!("Nothing to explain: {shown}"),
        (few, all) => {
            let others = match all - few {
                0 | 1 => String::new(),
                _ => format!(" Apart from these, {shown}"),
            };
            format!(
                "Cannot tell whether cells differ that have fewer than {TRIALS_MIN} trials ({few} of {all}).{others} A run with {TRIALS_MIN} trials or more of each can show more."
            )
        }
    }
}

/// The cells that have too few trials to be compared.
fn with_few_trials(run: &Analysis) -> Vec<&CellAnalysis> {
    run.cells
        .iter()
        .filter(|cell| cell.n < TRIALS_MIN)
        .collect()
}

/// Whether one of several cells cannot be compared, or the only one cannot be judged: uncompared cells may differ.
fn leaves_cells_open(run: &Analysis) -> bool {
    match run.cells.as_slice() {
        [cell] => leaves_tails_open(cell),
        _ => !with_few_trials(run).is_empty(),
    }
}

/// The reason why nothing in a run can be explained.
fn unexplainable(reason: Unexplainable, file: &Path) -> String {
    match reason {
        Unexplainable::Explains => format!(
            "This run explains a difference itself: iolab table {}",
            file.display()
        ),
        Unexplainable::Programs => format!(
            "'iolab why' cannot explain differences between programs: no setting of iolab takes a mechanism away from a program. What they differ in: iolab table {}",
            file.display()
        ),
        Unexplainable::Groups => "'iolab why' cannot explain differences between trials with groups of workers, as this run has them.".to_owned(),
        Unexplainable::Ranks => "'iolab why' explains differences between trials of one process; several processes (ranks) measured this run. Measure with one, and explain that run.".to_owned(),
        Unexplainable::Targets => "'iolab why' explains differences on one target; this run compares several. Measure one alone, and explain that run.".to_owned(),
        Unexplainable::Tools => "'iolab why' explains differences between trials of iolab; another tool measured a part of this run. Measure without --peer, and explain that run.".to_owned(),
    }
}

/// The difference that the user asks about, or the first one with a suspect that can be removed, or whose cause the run itself
/// shows; the first one without any. With its number.
fn chosen<'a>(
    (run, found): (&'a AnalysedRun, &'a [Phenomenon]),
    options: &'a Why,
    program: Program,
) -> Result<(usize, Explanation<'a>)> {
    let explanation = |phenomenon| Explanation {
        file: &options.file,
        run,
        phenomenon,
        changes_system: options.change_system,
        program,
    };
    let is_open = |phenomenon: &'a Phenomenon| -> Result<bool> {
        let one = explanation(phenomenon);
        let is_known = one.by_construction()?.is_some();
        let inquiry = || {
            one.experiment(options.budget, &options.suspects)
                .map(|own| own.inquiry)
        };
        Ok(is_known || inquiry()?.is_some_and(|own| own.suspects().next().is_some()))
    };
    let first = || found.iter().position(|one| is_open(one).unwrap_or(true));
    let number = options.of.unwrap_or_else(|| 1 + first().unwrap_or(0));
    let place = number.checked_sub(1).and_then(|place| found.get(place));
    let phenomenon = place.ok_or_else(|| {
        Error::usage(format!(
            "there is no difference number {number}; the run shows {}",
            found.len()
        ))
        .hint(format!("iolab why {} --list", options.file.display()))
    })?;
    Ok((number, explanation(phenomenon)))
}

/// A difference to be explained, and the run that shows it.
pub(crate) struct Explanation<'a> {
    /// The run file that shows the difference.
    pub(crate) file: &'a Path,
    pub(crate) run: &'a AnalysedRun,
    pub(crate) phenomenon: &'a Phenomenon,
    /// Whether the user allows trials to change settings of the kernel.
    pub(crate) changes_system: bool,
    /// The program that measures.
    pub(crate) program: Program,
}

impl Explanation<'_> {
    fn is_model(&self) -> bool {
        self.run.record().run.target_kind == TargetKind::Model
    }

    /// The settings of both sides.
    fn sides(&self) -> Result<Sides> {
        let sides = self.phenomenon.sides(self.run.analysis());
        let sides =
            sides.ok_or_else(|| Error::usage("the run file lacks a cell that its claims name"))?;
        Ok(Sides {
            machine: self.machine(),
            ..sides
        })
    }

    /// The settings of both sides, for variants that follow each other.
    fn sides_of(&self, precondition: Precondition) -> Result<Sides> {
        let mut sides = self.sides()?;
        // On a model each trial has a new disk.
        if !sides.is_model && !precondition.writes() {
            sides.machine.leftover = leftover(self.run.analysis(), self.phenomenon);
        }
        Ok(sides)
    }

    /// The machine as the run found it; with several targets, without their devices.
    fn machine(&self) -> MachineState {
        let facts = &self.run.record().environment;
        let is_one = self.run.record().further_targets.is_empty();
        let kib = |kib: u64| kib.checked_mul(1024);
        let cells = self.run.analysis().cells.iter();
        let sides = [self.phenomenon.base.cell, self.phenomenon.other.cell];
        let waits = cells
            .filter(|cell| sides.contains(&cell.cell.id))
            .filter_map(|cell| cell.disturbance.wait_for_others);
        let huge_pages = facts.get(&KEYS.transparent_huge_pages);
        MachineState {
            may_change_system: self.changes_system,
            may_raise_nice: placement::may_raise_nice(),
            may_be_realtime: placement::may_be_realtime(),
            scheduler: facts.get(&KEYS.device_scheduler).filter(|_| is_one),
            request_max_bytes: facts
                .get(&KEYS.device_request_max_kib)
                .filter(|_| is_one)
                .and_then(kib),
            read_ahead_bytes: facts
                .get(&KEYS.device_read_ahead_kib)
                .filter(|_| is_one)
                .and_then(kib),
            huge_pages: huge_pages.map(|text| in_force(&text)),
            cpu_wait: waits.max_by(f64::total_cmp),
            leftover: Leftover::default(),
        }
    }

    /// The cause, if the run has it as a factor: the sides differ in a suspect and in nothing else.
    ///
    /// # Errors
    /// A run file that lacks the cells.
    pub(crate) fn by_construction(&self) -> Result<Option<String>> {
        let in_words =
            |suspect| words::by_construction(self.run.analysis(), self.phenomenon, suspect);
        Ok(self.sides()?.by_construction().map(in_words))
    }

    /// The experiment that explains it within this time, with only these suspects if any are named.
    ///
    /// # Errors
    /// A run file that lacks necessary facts.
    pub(crate) fn experiment(&self, budget: Duration, only: &[&'static str]) -> Result<Experiment> {
        let record = self.run.record();
        let source = self.file.display().to_string();
        let definition = Experiment::from_toml(&record.experiment.toml, &source)?;
        let took = |id: i64| {
            let elapsed = self.run.analysis().cell(id)?.median(Response::Elapsed)?;
            Some(Duration::from_nanos(elapsed as u64))
        };
        let sides = [self.phenomenon.base, self.phenomenon.other];
        // A fall concerns throughput, and a tail a quantile far from another one, whatever the run asks about.
        let (took, response) = match &self.phenomenon.kind {
            PhenomenonKind::Cells => (
                sides.map(|side| took(side.cell).unwrap_or(TRIAL_TIME)),
                record.experiment.response,
            ),
            PhenomenonKind::Loads(fall) => ([fall.first, fall.whole], Response::Throughput),
            PhenomenonKind::Quantiles(tail) => ([tail.time; 2], Response::P99),
        };
        let [around, write_out] = overhead(self.run, self.phenomenon);
        inquiry::experiment(&ToExplain {
            text: words::phenomenon(self.run.analysis(), self.phenomenon),
            seen: self.phenomenon.seen.ratio,
            expected: self.phenomenon.expected,
            sides: self.sides_of(definition.design.precondition)?,
            only: only.to_vec(),
            took,
            response,
            precondition: definition.design.precondition,
            changes_inside: changes_inside(self.run.analysis(), self.phenomenon),
            around,
            write_out,
            budget,
        })
    }

    /// Refuses writes to an existing file or device, for which no option gives consent here.
    fn check_writes(&self, record: &RunRecord) -> Result<()> {
        let sides = self.sides()?;
        let writes = [&sides.base, &sides.other]
            .into_iter()
            .any(|side| side.trial.writes());
        match writes && record.run.target_kind.is_existing() {
            false => Ok(()),
            true => Err(Error::refused(format!(
                "'iolab why' does not write to an existing file or device, here {}",
                record.run.target
            ))
            .hint("measure the difference in a directory, where iolab makes its own scratch file, and explain that run")),
        }
    }

    /// The site of the run.
    ///
    /// # Errors
    /// A model that has changed; writes to an existing file or device.
    pub(crate) fn site(
        &self,
        foresees_ranks: bool,
        signals: Rc<OnceCell<StopFlags>>,
    ) -> Result<Site> {
        let record = self.run.record();
        let targets = target_paths(record);
        let model = match &targets[..] {
            [target] => open_virtual(self.program.schemes, target, Some(&record.environment))?,
            _ => None,
        };
        let was_model = self.is_model() || record.environment.get(&KEYS.model_digest).is_some();
        usage_errors! {
            was_model && model.is_none() => format!("{} is not the disk that the run measured: its definition has changed", record.run.target),
                "measure again, and ask about that run";
        }
        self.check_writes(record)?;
        let region = match &model {
            Some(_) => Region::Cut,
            None => Region::Had(vec![record.run.target_bytes]),
        };
        let watch = self.program.watch(&targets);
        let terms = Terms {
            // No consent: the file names the target, and no file decides that data may be destroyed.
            system: Permission::of(self.changes_system),
            region,
            keeps_cache: true,
            foresees_ranks,
            signals,
            ..Terms::strict(self.program)
        };
        Ok(Site::of(targets, model, watch, terms))
    }
}

/// Says that no suspect applies.
fn no_suspect(experiment: &Experiment, is_model: bool) -> Outcome {
    let inquiry = experiment.inquiry.as_ref();
    let mut text = inquiry.map_or_else(String::new, words::plan);
    if !is_model && inquiry.is_some_and(Inquiry::compares_quantiles) {
        text += ". A run with --set trace=true, as root, shows in which layer the slowest requests wait.";
    }
    say(&text)?;
    Err(Failure::CannotTell)
}

#[cfg(test)]
mod tests {
    use iolab_analysis::analysis::analyse;
    use iolab_synthetic::{add_cell, record};

    use super::*;

    /// Two cells of three have enough trials; the third one is far from both.
    #[test]
    fn cells_with_few_trials_leave_differences_open() {
        let even = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
        let mut record = record("read-size", &["bs"]);
        add_cell(&mut record, &["bs=4KiB"], &even);
        add_cell(&mut record, &["bs=64KiB"], &even);
        let compared = analyse(&record);
        assert!(!leaves_cells_open(&compared));
        add_cell(&mut record, &["bs=1MiB"], &[900.0, 901.0, 899.0]);
        assert!(leaves_cells_open(&analyse(&record)));
    }
}
