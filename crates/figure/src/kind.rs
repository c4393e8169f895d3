//! The kinds of figures: names, descriptions, and required data.

use iolab_analysis::analysis::Response;

/// The data of a figure besides the cells of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// No data besides the cells.
    Cells,
    /// The latency histograms ([`super::FigureRun::latencies`]).
    Latencies,
    /// The trials over time ([`super::FigureRun::series`]).
    Series,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $needs:expr, $words:literal;)+) => {
        iolab_workload::named! {
            /// The kind of a figure. The variants are in the order of the help.
            pub enum FigureKind: "kind of figure" {
                $($(#[$doc])* $kind = $name,)+
            }
        }

        impl FigureKind {
            /// A description for the help, one line.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$kind => $words,)+
                }
            }

            fn needs(self) -> Needs {
                match self {
                    $(Self::$kind => $needs,)+
                }
            }
        }
    };
}

kinds! {
    /// The response against a factor.
    Response = "response", Needs::Cells,
        "the response against a factor: lines over numbers, bars over names";
    /// Latency against percentiles.
    Percentiles = "percentiles", Needs::Latencies,
        "latency against its percentile, with a stretched tail";
    /// Latency against throughput.
    Load = "load", Needs::Cells,
        "latency against throughput as the load grows";
    /// Both sides above, the ratio below.
    Ratio = "ratio", Needs::Cells,
        "two runs (two FILEs) or two levels (--by): both, and their ratio with its interval";
    /// p values of a comparison for several numbers of trials.
    PValues = "p-values", Needs::Cells,
        "p of their difference, with the first 10, the first 20 and all trials";
    /// Trials in order.
    Order = "order", Needs::Cells,
        "every trial in the order of time";
    /// Rounds until they are steady.
    Rounds = "rounds", Needs::Cells,
        "the tracked quantity over the rounds of a run until they are steady (pts-iops, --precondition steady)";
    /// Throughput within trials.
    Course = "course", Needs::Series,
        "throughput within the trials over time; with --y p99, latency (--soak, --set latency_over_time=true)";
    /// Stages of requests.
    Stages = "stages", Needs::Cells,
        "time of requests by layer, and of the slowest 1 %, for traced cells (--set trace=true)";
    /// The part of a difference that remains without each suspect.
    Why = "why", Needs::Cells,
        "the rest of a difference without each suspect, for a run of iolab why";
}

/// The kinds with lines at service levels.
pub(super) const WITH_LINES: &[FigureKind] = &[FigureKind::Response, FigureKind::Load];

impl FigureKind {
    /// Whether the kind needs the latency histograms ([`super::FigureRun::latencies`]).
    pub fn needs_latencies(self) -> bool {
        self.needs() == Needs::Latencies
    }

    /// Whether the kind needs the time series of trials ([`super::FigureRun::series`]).
    pub fn needs_series(self) -> bool {
        self.needs() == Needs::Series
    }

    /// Whether the kind needs the latencies of trials over time ([`super::FigureRun::over_time`]) to show this
    /// quantity.
    pub fn needs_latency_over_time(self, quantity: Option<Response>) -> bool {
        self == Self::Course && quantity.is_some_and(Response::is_latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in FigureKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(!kind.words().is_empty(), "{kind}");
        }
        let error = "pie".parse::<FigureKind>().unwrap_err();
        insta::assert_snapshot!(error.remedy().unwrap(), @"it is one of: response, percentiles, load, ratio, p-values, order, rounds, course, stages, why");
    }
}
