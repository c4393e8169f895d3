//! Refuses options that a figure would ignore.

use iolab_workload::{Error, Result};

use super::choice::Choice;
use super::kind::FigureKind;
use super::options::{Center, Options, Spread};

impl Options {
    /// What is asked for, other than by default.
    pub(super) fn asked(&self) -> Vec<Choice> {
        let Self {
            kind: _,
            x,
            y,
            series,
            facet,
            log_x,
            log_y,
            center,
            spread,
            points,
            by,
            margin,
            references,
            title: _,
            width_pt: _,
            height_pt: _,
            text_pt: _,
            id: _,
        } = self;
        let usual = Self::default();
        let all = [
            (Choice::X, x.is_some()),
            (Choice::Y, y.is_some()),
            (Choice::Series, series.is_some()),
            (Choice::Facet, facet.is_some()),
            (Choice::LogX, log_x.is_some()),
            (Choice::LogY, log_y.is_some()),
            (Choice::Center, *center != Center::default()),
            (Choice::Spread, *spread != Spread::default()),
            (Choice::Points, *points),
            (Choice::By, by.is_some()),
            (Choice::Margin, margin.total_cmp(&usual.margin).is_ne()),
            (Choice::Line, !references.is_empty()),
        ];
        let asked = all.into_iter().filter(|(_, is_asked)| *is_asked);
        asked.map(|(choice, _)| choice).collect()
    }

    /// Refuses what a figure of this kind would ignore.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the option and the kinds that use it.
    pub(super) fn check(&self, kind: FigureKind) -> Result<()> {
        match self.asked().into_iter().find(|choice| !choice.suits(kind)) {
            None => Ok(()),
            Some(choice) => {
                let flag = choice.flag();
                let kinds: Vec<String> = choice.kinds().iter().map(ToString::to_string).collect();
                Err(
                    Error::usage(format!("a figure of the kind {kind} does not use {flag}")).hint(
                        format!("leave it out; it suits --kind {}", kinds.join(", ")),
                    ),
                )
            }
        }
    }

    /// Refuses what the figure of an observation would ignore.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the option.
    pub(super) fn check_of_witness(&self) -> Result<()> {
        match self.asked().first() {
            None => Ok(()),
            Some(choice) => Err(Error::usage(format!(
                "the figure of an observation does not use {}",
                choice.flag()
            ))
            .hint("leave it out; --title, --width and --height suit it")),
        }
    }
}
