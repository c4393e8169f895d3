//! What can be asked of a figure, and which kinds use it: the others refuse it instead of ignoring it.

use super::kind::FigureKind::{
    self, Course, Ecdf, Heat, Load, Order, PValues, Percentiles, Ranks, Ratio, Response, Rounds,
    Scaling,
};

/// An option that changes what a figure shows. Titles and lengths suit every figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    X,
    Y,
    Series,
    Facet,
    LogX,
    LogY,
    Center,
    Spread,
    Points,
    By,
    Margin,
    Line,
}

impl Choice {
    /// The kinds that use it.
    pub(super) fn kinds(self) -> &'static [FigureKind] {
        match self {
            Self::X => &[Response, Load, Scaling, Ratio, PValues, Heat],
            Self::Y => &[
                Response, Load, Scaling, Ratio, PValues, Order, Course, Heat, Ranks,
            ],
            Self::Series | Self::Facet => {
                &[Response, Percentiles, Ecdf, Load, Scaling, Course, Heat]
            }
            Self::LogX => &[Response, Ecdf, Load, Scaling, Ratio, PValues],
            Self::LogY => &[
                Response, Percentiles, Load, Scaling, Ratio, Order, Rounds, Course, Heat, Ranks,
            ],
            Self::Center => &[Response, Load, Heat],
            Self::Spread => &[Response, Load],
            Self::Points => &[Response],
            // The margin decides the verdict of a mark.
            Self::By | Self::Margin => &[Ratio, PValues],
            Self::Line => &[Response, Load],
        }
    }

    /// Whether a kind uses it.
    pub(super) fn suits(self, kind: FigureKind) -> bool {
        self.kinds().contains(&kind)
    }

    /// The option of the command line.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::X => "--x",
            Self::Y => "--y",
            Self::Series => "--series",
            Self::Facet => "--facet",
            Self::LogX => "--log-x or --linear-x",
            Self::LogY => "--log-y or --linear-y",
            Self::Center => "--center",
            Self::Spread => "--interval",
            Self::Points => "--points",
            Self::By => "--by",
            Self::Margin => "--margin",
            Self::Line => "--line",
        }
    }
}
