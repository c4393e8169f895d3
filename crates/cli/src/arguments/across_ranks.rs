//! Behaviour of each command in several processes of a launcher (mpirun, srun).

use super::Command;

/// Behaviour of a command that several processes were started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcrossRanks {
    /// The processes carry it out together.
    Together,
    /// The processes are refused, because several would disturb each other: the command's name, and a command that they can
    /// carry out together.
    Alone {
        name: &'static str,
        instead: &'static str,
    },
    /// Each process carries it out for itself.
    Each,
}

/// The alternative of several processes to a suite or a requirement.
const TOGETHER: &str =
    "a build with MPI measures one experiment with all processes: iolab run EXPERIMENT";

impl AcrossRanks {
    /// This behaviour, or each process for itself if the command only plans.
    fn unless(self, is_plan: bool) -> Self {
        if is_plan { Self::Each } else { self }
    }
}

impl Command {
    /// Its behaviour in several processes.
    pub(crate) fn across_ranks(&self) -> AcrossRanks {
        use AcrossRanks::{Alone, Each, Together};
        match self {
            Self::Run(options) => Together.unless(options.changes.dry_run),
            Self::Resume(options) => Together.unless(options.dry_run),
            Self::Study(options) => Alone {
                name: "study",
                instead: TOGETHER,
            }
            .unless(options.changes.dry_run),
            Self::Fit(options) => Alone {
                name: "fit",
                instead: TOGETHER,
            }
            .unless(options.dry_run),
            Self::Why(options) => Alone {
                name: "why",
                instead: "it explains a run of one process",
            }
            .unless(options.dry_run || options.list),
            Self::Witness(_)
            | Self::Doctor(_)
            | Self::Serve(_)
            | Self::Compare(_)
            | Self::Report(_)
            | Self::List(_)
            | Self::Show(_)
            | Self::Table(_)
            | Self::Import(_)
            | Self::Plot(_)
            | Self::Gate(_)
            | Self::History(_)
            | Self::Stats(_)
            | Self::Export(_)
            | Self::Model(_)
            | Self::Schema(_)
            | Self::Completions(_) => Each,
        }
    }
}
