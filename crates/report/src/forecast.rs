//! The forecast of plans as a table.

use crate::notation::clean;
use std::time::Duration;

use iolab_analysis::analysis::StandardFollowed;
use iolab_plan::cells::Plan;
use iolab_plan::forecast::{ASSUMED_RATE, Forecast, Writes};
use iolab_plan::precondition::{Emptying, Round};
use iolab_plan::standard::{Medium, TargetFacts};
use iolab_workload::settings::CellSpec;
use iolab_workload::units::{format_bytes, rough_duration, significant};

use crate::findings::sentences::foreseen;
use crate::layout::{self, columns_over};
use iolab_workload::escape_control::escape_control;

/// Executor of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Requests of iolab to storage.
    Requests,
    /// Programs of the user, of which iolab does not know what they write.
    Programs,
    /// A model: nothing is written, and time is virtual.
    Model,
}

/// A table with one row per plan and one for the sum, for a terminal of `width` columns. Below it stands the
/// total of written bytes as well, so that its column is dropped first on narrow terminals.
pub fn text(forecasts: &[Forecast], by: By, width: u16) -> String {
    // A row of several forecasts is their sum.
    let mut rows: Vec<&[Forecast]> = forecasts.chunks(1).collect();
    rows.extend((forecasts.len() > 1).then_some(forecasts));
    let column = columns_over(&rows);
    let time = match by {
        By::Model => "virtual time",
        By::Requests | By::Programs => "measuring",
    };
    let mut columns = vec![
        column("experiment", 0, &|row| match row {
            [only] => clean(&only.experiment),
            _ => "total".to_owned(),
        })
        .left(),
        column("cells", 1, &|row| {
            row.iter().map(|one| one.cells).sum::<usize>().to_string()
        }),
        column("trials", 2, &|row| {
            let sum = |of: fn(&Forecast) -> u64| row.iter().map(of).fold(0, u64::saturating_add);
            match (sum(|one| one.trials.0), sum(|one| one.trials.1)) {
                (least, most) if least < most => format!("{least} to {most}"),
                (_, most) => most.to_string(),
            }
        }),
        column(time, 0, &|row| measuring(row)),
    ];
    if by == By::Requests {
        columns.push(column("trials write", 3, &|row| {
            let trims = match row.iter().any(|one| one.trims) {
                true => " besides trims",
                false => "",
            };
            bounded(writes_of(row)) + trims
        }));
    }
    layout::text(columns, width)
}

/// Time of all trials of some plans.
fn measuring(row: &[Forecast]) -> String {
    let least = row.iter().map(|one| one.time.0);
    let least: Option<Duration> = least
        .reduce(|one, other| Some(one?.saturating_add(other?)))
        .flatten();
    let most = row.iter().map(|one| one.time.1);
    let most = most.fold(Duration::ZERO, Duration::saturating_add);
    let mut rounds = row.iter().map(|one| one.precondition.0.rounds_of_cells());
    match least {
        Some(least) if least < most => {
            let (least, most) = (rough_duration(least), rough_duration(most));
            // Each trial takes time in addition to its I/O, which bounds of rounds do not count.
            match least == most {
                true => format!("about {most}"),
                false if rounds.any(|own| own.is_some()) => format!("about {least} to {most}"),
                false => format!("{least} to {most}"),
            }
        }
        _ => format!("up to about {}", rough_duration(most)),
    }
}

/// Bytes that all plans together write, for unknown storage.
pub fn written_by_all(forecasts: &[Forecast]) -> String {
    let writes = writes_of(forecasts);
    let mut written = bounded(writes);
    if !writes.is_bounded {
        let rate = significant(ASSUMED_RATE / 1e9);
        written += &format!(" at an assumed {rate} GB/s, more where storage is faster");
    }
    match forecasts.iter().any(|forecast| forecast.trims) {
        true => written + ", besides trims (discards) of blocks in their regions",
        false => written,
    }
}

/// Bytes that a plan writes, for unknown storage: `at most 20 MiB`.
pub fn written(forecast: &Forecast) -> String {
    written_by_all(std::slice::from_ref(forecast))
}

/// Description of the preconditioning of targets of this medium: `trims (discards) 16 MiB and writes 32 MiB in
/// 0.1 s at 3 GB/s (trim+seq:2)`. `None` if it does nothing. `medium` is `None` if the media are unknown or
/// differ; `has_namespace` says whether some target is an NVMe namespace.
pub fn preconditioning(
    forecast: &Forecast,
    medium: Option<Medium>,
    has_namespace: bool,
) -> Option<String> {
    let (plan, region) = forecast.precondition;
    let trimmed = format!("trims (discards) {}", format_bytes(region as f64));
    let trims = match (plan.emptying, medium) {
        // A new model holds nothing.
        (Emptying::Not, _) | (_, Some(Medium::Model)) => None,
        (Emptying::Trim, _) => Some(trimmed),
        // Only an NVMe namespace can be purged.
        (Emptying::Purge, Some(Medium::File)) => {
            Some(format!("{trimmed} instead of purging a file"))
        }
        (Emptying::Purge, Some(Medium::Device)) if !has_namespace => Some(format!(
            "{trimmed} instead of purging (only an NVMe namespace can be purged)"
        )),
        (Emptying::Purge, Some(Medium::Device) | None) => Some(format!(
            "purges all of each NVMe namespace that offers Format NVM, also beyond the range that is measured, and {trimmed} of any other target"
        )),
    };
    let Some((passes, more)) = plan.passes() else {
        return trims.map(|trims| format!("{trims} ({plan})"));
    };
    let bytes = region as f64 * f64::from(passes);
    let rounds = plan.steady.and_then(|steady| match steady.round {
        Round::Writes(time) => Some(time.saturating_mul(steady.window)),
        Round::Cells => None,
    });
    let time = Duration::from_secs_f64(bytes / ASSUMED_RATE) + rounds.unwrap_or_default();
    let least = if more { "at least " } else { "" };
    let writes = format!(
        "writes {least}{} in {least}{} at an assumed {} GB/s",
        format_bytes(bytes),
        rough_duration(time),
        significant(ASSUMED_RATE / 1e9)
    );
    let both = [trims, Some(writes)].into_iter().flatten();
    Some(format!(
        "{} ({plan})",
        both.collect::<Vec<_>>().join(" and ")
    ))
}

/// Note that trials and times of the forecasts exclude writing out what trials leave in caches; `None` if no
/// trial leaves writes there.
pub fn write_out(forecasts: &[Forecast]) -> Option<&'static str> {
    let mut leaving = forecasts.iter().filter(|forecast| forecast.leaves_writes);
    let first = leaving.next()?;
    Some(match first.is_counted {
        true => {
            "Not forecast: the time to write out unsynced data after each trial. It makes the run longer: 20 times as long if a cache takes writes 20 times as fast as it writes them out."
        }
        false => {
            "Not forecast: the time to write out unsynced data after each trial. It counts towards the budget: slow storage gets fewer trials. The run exceeds its budget only if the first trials of all cells do."
        }
    })
}

/// The test of a standard that a plan follows, with its known deviations; `None` without a standard. The target
/// is not open yet: `medium` and `bytes`, its usable size, are `None` if unknown.
pub fn standard(plan: &Plan, medium: Option<Medium>, bytes: Option<u64>) -> Option<String> {
    let experiment = plan.experiment();
    let cells: Vec<&CellSpec> = plan.cells().iter().map(|cell| &cell.spec).collect();
    let target = TargetFacts {
        medium,
        bytes,
        ..TargetFacts::default()
    };
    let followed = StandardFollowed::of(experiment, &cells, target)?;
    let text = foreseen(&followed, medium);
    Some(match experiment.name == followed.test.name() {
        true => text,
        false => format!("{}: {text}", escape_control(&experiment.name)),
    })
}

fn writes_of(forecasts: &[Forecast]) -> Writes {
    let own = forecasts.iter().map(Forecast::writes);
    own.fold(Writes::NOTHING, Writes::and)
}

/// The bytes without the rate.
fn bounded(writes: Writes) -> String {
    let bytes = format_bytes(writes.bytes as f64);
    match (writes.is_bounded, writes.bytes) {
        (true, 0) => "nothing".to_owned(),
        (true, _) => format!("at most {bytes}"),
        (false, _) => format!("up to {bytes}"),
    }
}
