//! `iolab study --explain`: the causes of the largest effects of a study.

use std::cell::OnceCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use crate::command::{Explanation, Measuring, announce};
use crate::inquiry::INQUIRY;
use crate::phenomena::phenomena;
use crate::phenomenon::Phenomenon;
use crate::words;
use iolab_analysis::claim::{Claim, claims};
use iolab_plan::suspect::Compared;
use iolab_report::layout::paragraph;
use iolab_report::overview::Input;
use iolab_runfile::Folder;
use iolab_runner::StopFlags;
use iolab_workload::units::format_duration;

use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, Results};
use iolab_command::run_files::read_run;

/// Effects that are explained.
const EFFECTS: usize = 2;

/// The budget of each effect, whether trials may change settings of the kernel, and the flags that end measurements early.
type Allowed = (Duration, bool, Rc<OnceCell<StopFlags>>);

/// An effect with its place among the runs of the study.
type Found<'a> = (&'a Input, Phenomenon);

/// The addition to a study with this budget of each effect, in words.
pub fn addition(budget: Duration) -> String {
    format!(
        "--explain adds up to {EFFECTS} x {} of trials for the causes of the {EFFECTS} largest effects",
        format_duration(budget)
    )
}

/// Finds the causes, prints them, and returns the runs that found them, with what ended it early or could not be
/// removed.
///
/// # Errors
/// Output that cannot be written.
pub fn explain(
    by: Measuring,
    allowed: &Allowed,
    inputs: &[Input],
    (folder, seed): (&Folder, u64),
    to: &mut Results,
) -> Outcome<(Vec<Input>, Vec<Failure>)> {
    let largest = largest(inputs);
    let width = output::style().width;
    writeln!(to, "\nCauses")?;
    if largest.is_empty() {
        writeln!(
            to,
            "The study shows no effect that 'iolab why' can explain."
        )?;
    }
    let (mut explained, mut failures) = (Vec::new(), Vec::new());
    for ((input, phenomenon), number) in largest.into_iter().zip(1_u64..) {
        let explanation = Explanation {
            file: &input.path,
            run: &input.run,
            phenomenon: &phenomenon,
            changes_system: allowed.1,
            program: by.program,
        };
        writeln!(to, "{}:", input.run.analysis().experiment)?;
        let own_seed = seed.wrapping_add(1000 * number);
        let unexplained = match of_one(&explanation, (by, allowed), folder, own_seed) {
            Ok(Ok((found, ended))) => {
                let claims: Vec<Claim> = claims(&[found.run.analysis()]);
                write!(to, "{}", words::answer(&found, &claims, width))?;
                to.flush()?;
                explained.push(found);
                failures.extend(ended);
                if failures.iter().any(Failure::is_interrupt) {
                    break;
                }
                continue;
            }
            Ok(Err(reason)) => format!("{reason}."),
            // The results of the study are shown all the same.
            Err(failure) if failure.is_interrupt() => {
                failures.push(failure);
                break;
            }
            Err(Failure::Told(error)) => error.message().to_owned(),
            Err(failure) => return Err(failure),
        };
        let text = words::phenomenon(input.run.analysis(), &phenomenon);
        let text = format!("Not explained: {text}: {unexplained}");
        write!(to, "{}", paragraph(&text, "", width))?;
    }
    Ok((explained, failures))
}

/// The run that explains an effect, with the failure that ended it early or what could not be removed; without a run the reason, for the middle of a
/// sentence.
fn of_one(
    explanation: &Explanation<'_>,
    (by, (budget, _, signals)): (Measuring, &Allowed),
    folder: &Folder,
    seed: u64,
) -> Outcome<Result<(Input, Option<Failure>), String>> {
    let experiment = explanation.experiment(*budget, &[])?;
    let Some(inquiry) = experiment.inquiry.clone() else {
        return Ok(Err("no suspect can be removed".to_owned()));
    };
    if inquiry.suspects().next().is_none() {
        return Ok(Err(words::none_tried(&inquiry).to_owned()));
    }
    let site = explanation.site(false, Rc::clone(signals))?;
    announce(&site, &words::plan(&inquiry));
    let (plan, _) = site.plan(experiment, &|_| true)?;
    let place = folder.file(INQUIRY);
    let title = "iolab study --explain";
    let opened = site.open_one(plan)?;
    let (path, ended) = (by.measure)(opened, place, seed, title)?;
    let run = read_run(&path)?;
    Ok(Ok((Input::new(path, run), ended)))
}
/// The largest effects of all runs, effects of the I/O size last. Each run first contributes one: two effects of a run are
/// often the same effect at two places.
fn largest(inputs: &[Input]) -> Vec<Found<'_>> {
    let ranked = inputs.iter().flat_map(|input| of_run(input).enumerate());
    let mut all: Vec<(usize, Found<'_>)> = ranked.collect();
    all.sort_by(|(_, a), (_, b)| b.1.size.total_cmp(&a.1.size));
    all.sort_by_key(|(rank, one)| (*rank, one.1.unclaimed, compares_sizes(one)));
    all.truncate(EFFECTS);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Whether two I/O sizes are compared: small requests are slower on any storage, and that is the greatest difference of most runs.
fn compares_sizes((input, phenomenon): &Found<'_>) -> bool {
    let size = |id: i64| {
        let cell = input.run.analysis().cell(id);
        cell.map(|own| own.cell.trial().bs)
    };
    size(phenomenon.base.cell) != size(phenomenon.other.cell)
}

/// The effects of a run whose cause is not one of its factors; effects of the I/O size come last.
fn of_run(input: &Input) -> impl Iterator<Item = Found<'_>> {
    let run = input.run.analysis();
    let is_open = |one: &Phenomenon| {
        // The budget of a study has no room for loads that last beyond a fall, and its page compares cells.
        let compares_cells = one.compared() == Compared::Cells;
        compares_cells
            && one
                .sides(run)
                .is_some_and(|sides| sides.by_construction().is_none())
    };
    let found = phenomena(run).unwrap_or_default().into_iter();
    let mut own: Vec<Found<'_>> = found.filter(is_open).map(|one| (input, one)).collect();
    own.sort_by_key(compares_sizes);
    own.into_iter()
}
