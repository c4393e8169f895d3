//! `iolab why`: what causes a difference that a run shows, by measuring without each suspect.

use std::io::Write;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::{Again, Claim, Phenomenon, Verdict, claims, phenomena};
use iolab_plan::experiment::{self, Change, Experiment, INQUIRY};
use iolab_plan::suspect::Sides;
use iolab_record::environment::KEYS;
use iolab_record::{Cell, RunRecord, TargetKind};
use iolab_report::causes;
use iolab_report::input::Input;
use iolab_report::layout::paragraph;
use iolab_report::overview::Overview;
use iolab_runner::Disk;
use iolab_storage::Consent;
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};

use crate::arguments::Why;
use crate::changes::new_seed;
use crate::command::run::{check_output, place_of};
use crate::command::{ended, read_run};
use crate::exit::{Failure, Outcome};
use crate::output::{self, Results, note};
use crate::stop::Signals;
use crate::workspace::{Region, Site, TargetNames};

/// Most lines of what limits the numbers.
const CAVEAT_LINES: usize = 3;

/// Measures both sides of a difference without each suspect, and says what was found.
pub(crate) fn why(options: &Why) -> Outcome {
    let run = read_run(&options.file)?;
    let found = phenomena(run.analysis());
    if options.list || found.is_empty() {
        return list(&run, &found);
    }
    let experiment = asked(&run, chosen(&found, options)?, options)?;
    let site = site(&run, options)?;
    let inquiry = experiment.inquiry.clone();
    let (plan, _) = site.plan(experiment, &|_| true)?;
    check_output(options.output.as_deref(), 1)?;
    let Some(inquiry) = inquiry.filter(|inquiry| !inquiry.tried.is_empty()) else {
        return no_suspect(plan.experiment());
    };
    if options.dry_run {
        return site.dry_run(
            std::slice::from_ref(&plan),
            false,
            &[causes::plan(&inquiry)],
        );
    }
    note(format_args!("note: {}", causes::plan(&inquiry)));
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
    let (opened, plan) = site.open_one(plan)?;
    let place = place_of(options.output.as_deref(), INQUIRY)?;
    iolab_runfile::check_place(place)?;
    let seed = options.seed.unwrap_or_else(new_seed);
    let workspace = opened.prepare(seed, std::slice::from_ref(&plan), None)?;
    let title = format!("iolab why {}", options.file.display());
    let mut display = workspace.display(INQUIRY).titled(&title);
    let finished = iolab_runner::run(plan, seed, place, workspace.setup(), &mut display);
    let path = display.kept_in().map(Path::to_owned);
    drop(display);
    let finished = finished.map(|finished| finished.path);
    let measured = ended(finished, path.as_deref(), &workspace);
    let (path, interrupt) = workspace.close_after(measured)?;
    let input = Input::new(path.clone(), read_run(&path)?);
    let claims = claims(&[input.run.analysis()]);
    let width = output::style().width;
    let mut to = Results::new();
    for line in causes::lines(&claims, input.run.analysis()) {
        write!(to, "{}", paragraph(&line, "", width))?;
    }
    write!(
        to,
        "{}",
        Overview::new([&input]).caveats(CAVEAT_LINES, width)
    )?;
    to.flush()?;
    note(format_args!("\nrun file: {}", path.display()));
    to.end(path.display())?;
    match (interrupt, is_told(&claims)) {
        (Some(interrupt), _) => Err(interrupt),
        (None, true) => Ok(()),
        (None, false) => Err(Failure::CannotTell),
    }
}

/// Prints the differences of a run.
fn list(run: &AnalysedRun, found: &[Phenomenon]) -> Outcome {
    let mut to = Results::new();
    if found.is_empty() {
        writeln!(
            to,
            "The run shows no difference between two cells that 'iolab why' can explain."
        )?;
    }
    for (number, phenomenon) in (1..).zip(found) {
        let text = causes::phenomenon(run.analysis(), phenomenon);
        let mark = format!("{number:>3}  ");
        write!(to, "{}", paragraph(&text, &mark, output::style().width))?;
    }
    Ok(to.flush()?)
}

/// The difference that the user asks about.
fn chosen<'a>(found: &'a [Phenomenon], options: &Why) -> Result<&'a Phenomenon> {
    let number = options.of.unwrap_or(1);
    let place = number.checked_sub(1).and_then(|place| found.get(place));
    place.ok_or_else(|| {
        Error::usage(format!(
            "there is no difference number {number}, but {}",
            found.len()
        ))
        .hint(format!("iolab why {} --list", options.file.display()))
    })
}

/// The experiment that explains a difference.
fn asked(run: &AnalysedRun, phenomenon: &Phenomenon, options: &Why) -> Result<Experiment> {
    let record = run.record();
    let definition =
        Experiment::from_toml(&record.experiment.toml, &options.file.display().to_string())?;
    let spec = |id: i64| {
        let cell = record.cells.iter().find(|cell: &&Cell| cell.id == id);
        cell.map(|cell| cell.spec.clone())
            .ok_or_else(|| Error::usage("the run file lacks a cell that its claims name"))
    };
    let budget = Change::of("budget", &options.budget)?;
    let default = definition.design.budget;
    Experiment::inquiry(&experiment::Phenomenon {
        text: causes::phenomenon(run.analysis(), phenomenon),
        seen: phenomenon.seen,
        expected: phenomenon.expected,
        sides: Sides {
            base: spec(phenomenon.base.cell)?,
            other: spec(phenomenon.other.cell)?,
            is_model: record.run.target_kind == TargetKind::Model,
        },
        response: record.experiment.response,
        precondition: definition.design.precondition,
        budget: budget.budget().unwrap_or(default),
    })
}

/// Where the run was measured.
fn site(run: &AnalysedRun, options: &Why) -> Result<Site> {
    let record = run.record();
    let targets = iolab_runner::target_paths(record);
    let model = match &targets[..] {
        [target] => Disk::of_target(target)?,
        _ => None,
    };
    check_model(record, model.as_ref())?;
    let region = match &model {
        Some(_) => Region::Cut,
        None => Region::Had(vec![record.run.target_bytes]),
    };
    Ok(Site {
        model,
        targets,
        // The question says what it is about.
        names: TargetNames::default(),
        signals: Signals::default(),
        // The file names the target, and no file decides that data may be destroyed.
        consent: Consent::No,
        ranks: None,
        region,
        keeps_cache: true,
        foresees_ranks: options.dry_run,
    })
}

/// Refuses a disk that is not the one that was measured.
fn check_model(record: &RunRecord, model: Option<&Disk>) -> Result<()> {
    let measured = record.environment.get(&KEYS.model_digest);
    match measured == model.map(Disk::digest) {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "{} is not the disk that the run measured: its definition has changed",
            record.run.target
        ))
        .hint("measure again, and ask about that run")),
    }
}

/// Says that no suspect applies.
fn no_suspect(experiment: &Experiment) -> Outcome {
    let mut to = Results::new();
    let inquiry = experiment.inquiry.as_ref();
    let text = inquiry.map_or_else(String::new, causes::plan);
    write!(to, "{}", paragraph(&text, "", output::style().width))?;
    to.flush()?;
    Err(Failure::CannotTell)
}

/// Whether anything can be told: that the difference is not there, a cause, or that no suspect is one.
fn is_told(claims: &[Claim]) -> bool {
    let suspects = |is: fn(Verdict) -> bool| {
        claims
            .iter()
            .any(|claim| matches!(claim, Claim::Suspects(found) if is(found.verdict)))
    };
    let is_gone = claims.iter().any(
        |claim| matches!(claim, Claim::Reproduced(found) if found.again == Again::NotReproduced),
    );
    let is_named = |verdict| {
        matches!(
            verdict,
            Verdict::Cause | Verdict::Contributes | Verdict::Joint
        )
    };
    let is_open = |verdict| matches!(verdict, Verdict::CannotTell | Verdict::NotTried);
    let is_cleared = |verdict| verdict == Verdict::Cleared;
    is_gone || suspects(is_named) || (suspects(is_cleared) && !suspects(is_open))
}
