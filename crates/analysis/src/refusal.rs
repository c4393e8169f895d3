//! Why something is not analysed, as data, and the only sentences of this room: those of its errors.

// Elsewhere in this room sentences are denied.
#![allow(clippy::disallowed_macros)]

use iolab_workload::Error;

use crate::consent::NeededConsent;

/// Why something is not analysed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refusal<'a> {
    /// The latencies of this cell are too many to count.
    TooManyLatencies {
        /// Its id.
        cell: i64,
    },
    /// There are no runs.
    NoRuns,
    /// A side of a comparison has no run.
    SideWithoutRun,
    /// A run is on both sides of a comparison.
    OnBothSides {
        /// Its file.
        file: &'a str,
    },
    /// A run that a gate is to judge is not finished.
    Unfinished {
        /// Its file.
        file: &'a str,
        /// What the user has to allow to finish it.
        consent: NeededConsent,
    },
    /// Two sides measure different things.
    OtherResponse {
        /// What the base measures.
        base: String,
        /// What the new side measures.
        new: String,
    },
    /// Two sides have no cell in common.
    NoCellInCommon {
        /// A cell of the base; `None` where it has none.
        base: Option<String>,
        /// A cell of the new side.
        new: Option<String>,
    },
    /// A run has no such factor.
    NoSuchFactor {
        /// What the user named.
        named: &'a str,
        /// The factors that it has.
        factors: &'a [String],
    },
    /// A factor has no such level.
    NoSuchLevel {
        /// The factor.
        factor: &'a str,
        /// What the user named.
        named: &'a str,
        /// The levels that it has.
        levels: &'a [String],
    },
    /// Two levels are to be compared, and not two are named.
    NotTwoLevels {
        /// The factor.
        factor: &'a str,
        /// The levels that it has.
        levels: &'a [String],
    },
}

impl From<Refusal<'_>> for Error {
    fn from(refusal: Refusal<'_>) -> Self {
        match refusal {
            Refusal::TooManyLatencies { cell } => {
                Self::failed(format!("the latencies of cell {cell} are more than 2^63"))
            }
            Refusal::NoRuns => Self::usage("there are no runs"),
            Refusal::SideWithoutRun => Self::usage("a side has no run")
                .hint("name the runs of both sides: --base FILE... --new FILE..."),
            Refusal::OnBothSides { file } => {
                Self::usage(format!("the run of {file} is on both sides"))
                    .hint("name it on one side only")
            }
            Refusal::Unfinished { file, consent } => {
                Self::usage(format!("the run of {file} is not finished"))
                    .hint(format!("finish it: {}", consent.resume_command(file)))
            }
            Refusal::OtherResponse { base, new } => Self::usage(format!(
                "BASE measures {base} and NEW {new}"
            ))
            .hint("compare runs of the same experiment, or name what to compare with --metric"),
            Refusal::NoCellInCommon { base, new } => {
                let example = |cell: Option<String>| match cell {
                    Some(cell) => format!("has cells such as {cell}"),
                    None => "has no cell".to_owned(),
                };
                Self::usage(format!(
                    "the two have no cell in common: BASE {}, NEW {}",
                    example(base),
                    example(new)
                ))
                .hint("compare runs of the same experiment, or two levels of one run with --by")
            }
            Refusal::NoSuchFactor { named, factors } => {
                Self::usage(format!("the run has no factor {named:?}")).hint(match factors {
                    [] => "nothing varies in it; compare it with another run".to_owned(),
                    some => format!("it has: {}", some.join(", ")),
                })
            }
            Refusal::NoSuchLevel {
                factor,
                named,
                levels,
            } => Self::usage(format!("{factor} has no level {named:?} in the run"))
                .hint(format!("it has: {}", levels.join(", "))),
            Refusal::NotTwoLevels { factor, levels } => Self::usage("two levels are compared")
                .hint(format!(
                    "name them: --by {factor}=LEVEL,LEVEL out of {}",
                    levels.join(", ")
                )),
        }
    }
}
