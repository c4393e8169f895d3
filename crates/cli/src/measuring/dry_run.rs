//! Describes the measurements of a command and its writes, before anything is touched.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iolab_engine::trial::check_alignment;
use iolab_host::device::Device;
use iolab_plan::cells::{Plan, PlannedCell};
use iolab_plan::forecast::{ASSUMED_RATE, Forecast};
use iolab_plan::standard::Medium;
use iolab_report::forecast::{self, By};
use iolab_report::layout::wrapped;
use iolab_runner::VirtualTarget;
use iolab_runner::campaign::{Made, Site, Writes};
use iolab_runner::peers::{gap_anywhere, gaps, overhead, waiting};
use iolab_runner::ranks::is_own;
use iolab_storage::{Need, Size, Target, device_under, is_nvme_namespace};
use iolab_workload::escape_control::escape_control;
use iolab_workload::trial::{Backend, CacheState};
use iolab_workload::units::{exact_size, format_bytes, rough_duration, significant};
use iolab_workload::{Error, Result};

use super::PEERS;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, note};

/// Description of a dry run, apart from plans.
#[derive(Default)]
pub(crate) struct Part<'a> {
    /// Trials that an earlier session made of each plan, and what these took of its budget.
    pub(crate) made: Made,
    /// Whether another forecast precedes.
    pub(crate) follows: bool,
    /// Further descriptions.
    pub(crate) does: &'a [String],
}

/// Prints the forecasts of plans, site after site; `does` describes more after the last.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_all<'a>(
    sites: impl ExactSizeIterator<Item = (&'a Site, &'a [Plan])>,
    does: &[String],
) -> Outcome {
    let last = sites.len().saturating_sub(1);
    let all = sites.enumerate().map(|(number, (site, plans))| {
        let part = Part {
            follows: number > 0,
            does: if number == last { does } else { &[] },
            ..Part::default()
        };
        print(site, plans, &part)
    });
    all.fold(Ok(()), Outcome::and)
}

/// Prints the forecast of these plans at a site.
///
/// # Errors
/// Anything that would be refused before a target is opened.
pub(crate) fn print(site: &Site, plans: &[Plan], part: &Part<'_>) -> Outcome {
    let (needs, remarks) = site.foresee(plans)?;
    let needs = &needs[..];
    let (targets, model) = (&site.targets[..], site.model.as_deref());
    let Part {
        made: (made, spent),
        follows,
        does,
    } = *part;
    let forecasts: Vec<Forecast> = plans
        .iter()
        .map(|plan| Forecast::of(plan, &overhead(PEERS)).after(made, spent))
        .map(|forecast| forecast.beside_fill(filled(targets, needs)))
        .collect();
    let mut lines: Vec<String> = does.iter().cloned().chain(remarks).collect();
    let mut left_out: Vec<&str> = plans.iter().filter_map(Plan::left_out).collect();
    left_out.dedup();
    lines.extend(left_out.into_iter().map(str::to_owned));
    for plan in plans {
        let name = &plan.experiment().name;
        let told = [waiting(PEERS, plan), plan.shortfall(&overhead(PEERS))];
        let gaps = gaps(plan, 0, &gap_anywhere(PEERS))
            .into_iter()
            .map(|gap| gap.told);
        let told = gaps.chain(told.into_iter().flatten());
        lines.extend(told.map(|text| format!("{name}: {text}")));
    }
    let mut refusals: Vec<Error> = Vec::new();
    for (number, path) in targets.iter().enumerate().filter(|_| !follows) {
        lines.push(format!("\nTarget: {}", path.display()));
        let known = refusals.len();
        if let Some(need) = needs.get(number) {
            lines.push(place(path, need, &mut refusals)?);
        }
        refusals.extend(unaligned(path, plans));
        lines.extend(refusals[known..].iter().map(refused));
    }
    if !follows {
        let wanted: Vec<(PathBuf, &Need)> = targets.iter().cloned().zip(needs).collect();
        let refusal = Target::check_space(&wanted).err();
        lines.extend(refusal.as_ref().map(refused));
        refusals.extend(refusal);
    }
    let mut cells = plans.iter().flat_map(Plan::cells);
    let by = match model {
        Some(_) => By::Model,
        // The reader of a linkage is iolab's own.
        None if cells.any(|cell| cell.spec.runs_program() && cell.spec.linkage.is_none()) => {
            By::Programs
        }
        None => By::Requests,
    };
    let medium = medium(targets, model.is_some());
    let has_namespace = targets.iter().any(|path| is_nvme_namespace(path));
    let standards = plans
        .iter()
        .filter_map(|plan| forecast::standard(plan, medium, model.map(VirtualTarget::bytes)));
    lines.extend(standards);
    lines.extend(forecast::write_out(&forecasts).map(str::to_owned));
    lines.extend(written(
        plans,
        &forecasts,
        (medium, has_namespace),
        filled(targets, needs),
        by,
    ));
    let mut to = output::open(None)?;
    match (follows, model) {
        (true, Some(model)) => writeln!(to, "\nThen {}, in virtual time:\n", model.name())?,
        _ => writeln!(to, "Dry run: nothing is touched.\n")?,
    }
    let width = output::style().width;
    write!(to, "{}", forecast::text(&forecasts, by, width))?;
    for line in lines {
        write!(to, "{}", wrapped(&line, width))?;
    }
    to.flush()?;
    if let Some(first) = refusals.first() {
        return Err(Failure::Planned(first.kind()));
    }
    // Last, so that the programs to allow are listed.
    Ok(site.check_programs(plans)?)
}

/// Kind of the targets; `None` if they do not exist or differ.
fn medium(targets: &[PathBuf], is_virtual: bool) -> Option<Medium> {
    if is_virtual {
        return Some(Medium::Model);
    }
    let media = targets.iter().map(|path| {
        let kind = path.metadata().ok()?.file_type();
        Some(match kind.is_block_device() {
            true => Medium::Device,
            false => Medium::File,
        })
    });
    let media: Vec<Option<Medium>> = media.collect();
    let first = media.first().copied().flatten();
    first.filter(|_| media.iter().all(|medium| *medium == first))
}

/// Bytes written: to fill scratch files (`filled`), to precondition, by the trials.
fn written(
    plans: &[Plan],
    forecasts: &[Forecast],
    (medium, has_namespace): (Option<Medium>, bool),
    filled: u64,
    by: By,
) -> Vec<String> {
    if by == By::Model {
        return vec!["A model reads and writes no storage.".to_owned()];
    }
    let mut lines = Vec::new();
    if filled > 0 {
        let time = Duration::from_secs_f64(filled as f64 / ASSUMED_RATE);
        lines.push(format!(
            "Filling writes: {}, in {} at an assumed {} GB/s",
            format_bytes(filled as f64),
            match time < Duration::from_secs(1) {
                true => "less than 1 s".to_owned(),
                false => format!("about {}", rough_duration(time)),
            },
            significant(ASSUMED_RATE / 1e9)
        ));
    }
    for (plan, forecast) in plans.iter().zip(forecasts) {
        if let Some(text) = forecast::preconditioning(forecast, medium, has_namespace) {
            let name = escape_control(&plan.experiment().name);
            lines.push(format!(
                "Preconditioning of {name} {text}, in addition to the budget"
            ));
        }
    }
    lines.push(match by {
        By::Programs => "iolab does not know what the programs write.".to_owned(),
        By::Requests | By::Model => format!(
            "All trials together write: {}",
            forecast::written_by_all(forecasts)
        ),
    });
    lines
}

/// Announces the writes of a run, before anything is written: to fill scratch files, to precondition, in its trials. Writes
/// of programs are not included.
pub(crate) fn announce(writes: &Writes) {
    let Writes {
        forecasts,
        medium,
        has_namespace,
        filled,
        runs_programs,
    } = writes;
    let mut parts = Vec::new();
    if *filled > 0 {
        let bytes = format_bytes(*filled as f64);
        parts.push(format!("filling scratch files writes {bytes}"));
    }
    let conditioning = forecasts.iter();
    let conditioning = conditioning
        .filter_map(|forecast| forecast::preconditioning(forecast, *medium, *has_namespace));
    parts.extend(conditioning.map(|text| format!("preconditioning {text}")));
    let writes = forecasts.iter().any(Forecast::changes_data);
    if writes || (!parts.is_empty() && !runs_programs) {
        let trials = forecast::written_by_all(forecasts);
        parts.push(format!("trials write {trials}"));
    }
    if !parts.is_empty() {
        note(format_args!(
            "note: before and during trials: {}",
            parts.join("; ")
        ));
    }
}

/// Bytes of the scratch files that are filled before the first trial.
fn filled(targets: &[PathBuf], needs: &[Need]) -> u64 {
    let scratch = targets.iter().zip(needs);
    let scratch = scratch.filter(|(path, _)| path.is_dir());
    let bytes = scratch.map(|(_, need)| need.beside.filled(need.size.wanted()));
    bytes.fold(0, u64::saturating_add)
}

/// The first cell whose requests are not multiples of the blocks of the device below a target, as direct I/O needs. `None`
/// if all are, or if no device is known.
fn unaligned(path: &Path, plans: &[Plan]) -> Option<Error> {
    let device = device_under(path).and_then(|number| Device::read(Path::new("/sys"), number))?;
    let block = device.logical_block_bytes?;
    let refusal = |plan: &Plan, cell: &PlannedCell| {
        let trials = cell.spec.trials().into_iter();
        let mut direct = trials
            .filter(|trial| trial.cache == CacheState::Direct && trial.backend != Backend::Null);
        let error = direct.find_map(|trial| check_alignment(trial, block).err())?;
        Some(error.within(plan.describe(cell)))
    };
    plans.iter().find_map(|plan| {
        let mut cells = plan.cells().iter();
        cells.find_map(|cell| refusal(plan, cell))
    })
}

/// The message with which the run is refused.
fn refused(error: &Error) -> String {
    let hint = error
        .remedy()
        .map_or_else(String::new, |hint| format!("; {hint}"));
    match error.message().strip_prefix("refusing to ") {
        Some(what) => format!("Refused to {what}{hint}"),
        None => format!("Refused: {}{hint}", error.message()),
    }
}

/// The used part of the target, and the free space for it. Refusals go to `refusals`.
fn place(path: &Path, need: &Need, refusals: &mut Vec<Error>) -> Result<String> {
    let bytes = need.size.wanted();
    if !path.exists() {
        let why = match is_own(path) {
            true => "Each rank has a path of its own, which is checked when the run starts",
            // A plan may be for another machine.
            false => "The path does not exist here",
        };
        return Ok(format!("Bytes used: up to {}\n{why}", exact_size(bytes)));
    }
    let refusal = Target::check(path, need).err();
    if !path.is_dir() {
        let mut text = format!("Bytes used: up to {}", exact_size(bytes));
        refusals.extend(refusal);
        for demand in iolab_storage::taken(path, need)? {
            text.push_str(&format!("\nFree space: {demand}"));
            if !demand.fits() {
                refusals.push(Error::refused("too little space is free"));
            }
        }
        return Ok(text);
    }
    if refusal.is_some() {
        refusals.extend(refusal);
        return Ok(format!("Scratch file: {}", exact_size(bytes)));
    }
    let free = iolab_storage::free(path)?;
    let text = free.map_or("unknown".to_owned(), |bytes| format_bytes(bytes as f64));
    let text = format!(
        "Scratch file: {}, removed at the end; free for it: {text}",
        exact_size(bytes)
    );
    Ok(match (free, need.size) {
        (Some(free), Size::AtMost { most, least }) if least <= free && free < most => {
            format!("{text}\nLess is free: iolab makes it smaller")
        }
        (Some(_) | None, Size::Exactly(_) | Size::AtMost { .. }) => text,
    })
}
