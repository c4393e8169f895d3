//! Errors of analyses that are refused: the only sentences of this crate.

// Elsewhere in this crate sentences are denied.
#![allow(clippy::disallowed_macros)]

use iolab_workload::Error;

/// The latencies of a cell are too many to count.
pub(crate) fn too_many_latencies(cell: i64) -> Error {
    Error::failed(format!("the latencies of cell {cell} are more than 2^63"))
}

/// A side of a comparison has no run.
pub(crate) fn side_without_run() -> Error {
    Error::usage("a side has no run")
        .hint("name the runs of both sides: --base FILE... --new FILE...")
}

/// The run of a file is on both sides of a comparison.
pub(crate) fn on_both_sides(file: &str) -> Error {
    Error::usage(format!("the run of {file} is on both sides")).hint("name it on one side only")
}

/// Two sides measure different things: these.
pub(crate) fn other_response(base: &str, new: &str) -> Error {
    Error::usage(format!("BASE measures {base} and NEW {new}"))
        .hint("compare runs of the same experiment, or name what to compare with --metric")
}

/// Two sides have no cell in common; a cell of each, `None` where it has none. Where they are levels of a factor of one run: that factor,
/// and those in which they differ too.
pub(crate) fn no_cell_in_common(
    base: Option<String>,
    new: Option<String>,
    by: Option<(&str, Vec<&str>)>,
) -> Error {
    let example = |cell: Option<String>| match cell {
        Some(cell) => format!("has cells such as {cell}"),
        None => "has no cell".to_owned(),
    };
    Error::usage(format!(
        "the two have no cell in common: BASE {}, NEW {}",
        example(base),
        example(new)
    ))
    .hint(match by {
        Some((factor, others)) if others.is_empty() => format!(
            "one of these levels of {factor} has no measured cell: 'iolab table' shows why"
        ),
        Some((factor, others)) => {
            let others = others.join(" and ");
            format!(
                "the cells with these levels of {factor} differ in {others} too: measure both levels with the same {others}"
            )
        }
        None => {
            "compare runs of the same experiment, or two levels of one run with --by".to_owned()
        }
    })
}

/// Cells would match but for settings that the report of one side does not say.
pub(crate) fn unknown_settings() -> Error {
    Error::usage("what the two measured is not known: the imported reports leave settings of their jobs out")
        .hint("measure with 'iolab run', or import reports in which each job has its own entry with its options (fio without --group_reporting)")
}

/// A run has no factor of the name that the user gave, but these.
pub(crate) fn no_such_factor(named: &str, factors: &[String]) -> Error {
    Error::usage(format!("the run has no factor {named:?}")).hint(match factors {
        [] => "nothing varies in it; compare it with another run".to_owned(),
        some => format!("it has: {}", some.join(", ")),
    })
}

/// A factor has no level of the name that the user gave, but these.
pub(crate) fn no_such_level(factor: &str, named: &str, levels: &[String]) -> Error {
    Error::usage(format!("{factor} has no level {named:?} in the run"))
        .hint(format!("it has: {}", levels.join(", ")))
}

/// Two levels of a factor are to be compared, and not two of those that it has are named.
pub(crate) fn not_two_levels(factor: &str, levels: &[String]) -> Error {
    Error::usage("two levels are compared").hint(format!(
        "name them: --by {factor}=LEVEL,LEVEL out of {}",
        levels.join(", ")
    ))
}
