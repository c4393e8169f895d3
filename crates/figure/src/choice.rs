//! Choices of a figure, and the kinds that use them: the others refuse a choice instead of ignoring it.

use iolab_workload::{Error, Result};

use super::kind::FigureKind::{
    self, Course, Load, Order, PValues, Percentiles, Ratio, Response, Rounds,
};
use super::options::Options;

/// An option that changes what a figure shows. Titles and lengths suit every figure.
pub(super) struct Choice {
    /// The option of the command line.
    pub(super) flag: &'static str,
    /// The kinds that use the choice.
    pub(super) kinds: &'static [FigureKind],
    /// Whether the choice differs from its default.
    is_asked: fn(&Options) -> bool,
}

/// All choices.
pub(super) const CHOICES: [Choice; 9] = [
    Choice {
        flag: "--x",
        kinds: &[Response, Load, Ratio, PValues],
        is_asked: |o| o.x.is_some(),
    },
    Choice {
        flag: "--y",
        kinds: &[Response, Load, Ratio, PValues, Order, Course],
        is_asked: |o| o.y.is_some(),
    },
    Choice {
        flag: "--series",
        kinds: &[Response, Percentiles, Load, Course],
        is_asked: |o| o.series.is_some(),
    },
    Choice {
        flag: "--facet",
        kinds: &[Response, Percentiles, Load, Course],
        is_asked: |o| o.facet.is_some(),
    },
    Choice {
        flag: "--log-x or --linear-x",
        kinds: &[Response, Load, Ratio, PValues],
        is_asked: |o| o.log_x.is_some(),
    },
    Choice {
        flag: "--log-y or --linear-y",
        kinds: &[Response, Percentiles, Load, Ratio, Order, Rounds, Course],
        is_asked: |o| o.log_y.is_some(),
    },
    Choice {
        flag: "--points",
        kinds: &[Response],
        is_asked: |o| o.points,
    },
    Choice {
        flag: "--by",
        kinds: &[Ratio, PValues],
        is_asked: |o| o.by.is_some(),
    },
    Choice {
        // The margin decides the verdict of a mark.
        flag: "--margin",
        kinds: &[Ratio, PValues],
        is_asked: |o| o.margin.total_cmp(&Options::default().margin).is_ne(),
    },
];

impl Choice {
    /// Whether a kind uses the choice.
    pub(super) fn suits(&self, kind: FigureKind) -> bool {
        self.kinds.contains(&kind)
    }
}

impl Options {
    fn asked(&self) -> impl Iterator<Item = &'static Choice> {
        const ALL: &[Choice] = &CHOICES;
        ALL.iter().filter(|choice| (choice.is_asked)(self))
    }

    /// Refuses the choice if a figure of this kind would ignore it.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the option and the kinds that use it.
    pub(super) fn check(&self, kind: FigureKind) -> Result<()> {
        let Some(choice) = self.asked().find(|choice| !choice.suits(kind)) else {
            return Ok(());
        };
        let what = format!("a figure of the kind {kind} does not use {}", choice.flag);
        let kinds: Vec<String> = choice.kinds.iter().map(ToString::to_string).collect();
        let remedy = format!("leave it out; it suits --kind {}", kinds.join(", "));
        Err(Error::usage(what).hint(remedy))
    }

    /// Refuses the choice if the figure of an observation would ignore it.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the option.
    pub(super) fn check_of_witness(&self) -> Result<()> {
        let Some(choice) = self.asked().next() else {
            return Ok(());
        };
        let what = format!("the figure of an observation does not use {}", choice.flag);
        Err(Error::usage(what).hint("leave it out; --title, --width and --height suit it"))
    }
}
