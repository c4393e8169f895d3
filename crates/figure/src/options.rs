//! Options of figures.

use iolab_analysis::analysis::Response;
use iolab_stats::{Interval, Summary};
use iolab_workload::service_level::{LevelQuantity, Requests, ServiceLevel, ServiceLevels};
use iolab_workload::{Error, Result};

use super::FigureKind;

/// Lowest and highest width and height, points.
const LENGTH_RANGE: (f64, f64) = (100.0, 5000.0);

/// The response of a level; `None` where there is none, as for syncs and most quantiles.
fn response_of(level: &ServiceLevel) -> Option<Response> {
    let of_time = match level.quantity {
        LevelQuantity::Quantile(q) => Response::of_quantile(q),
        LevelQuantity::Max => Some(Response::Max),
        LevelQuantity::Mean => Some(Response::Mean),
        LevelQuantity::Iops => return Some(Response::Iops),
        LevelQuantity::Throughput => return Some(Response::Throughput),
    };
    of_time.filter(|_| level.of != Requests::Syncs)
}

iolab_workload::named! {
    /// Centre of the trials of a cell, with its bar.
    #[derive(Default)]
    pub enum Center: "centre" {
        /// The median and its 95 % interval, with the quartiles as a band if there is room.
        #[default]
        Median = "median",
        /// The mean and its 95 % interval.
        Mean = "mean",
        /// The median and the quartiles.
        Quartiles = "quartiles",
        /// The mean and one standard deviation on each side.
        Deviation = "sd",
    }
}

impl Center {
    /// The words of the note below a figure: the centre, and its bars.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Median => ("Median", "95 % interval"),
            Self::Mean => ("Mean", "95 % interval"),
            Self::Quartiles => ("Median", "quartiles"),
            Self::Deviation => ("Mean", "one standard deviation"),
        }
    }

    /// The centre of some trials.
    pub(super) fn of(self, summary: &Summary) -> f64 {
        match self {
            Self::Median | Self::Quartiles => summary.median,
            Self::Mean | Self::Deviation => summary.mean.unwrap_or(summary.median),
        }
    }

    /// The ends of the bar around it; `None` with too few trials.
    pub(super) fn bar(self, summary: &Summary) -> Option<(f64, f64)> {
        let ends = |interval: Interval| (interval.low, interval.high);
        match self {
            Self::Median => summary.median_interval.map(ends),
            Self::Mean => summary.mean_interval.map(ends),
            Self::Quartiles => summary.quartiles(),
            Self::Deviation => {
                let (mean, sd) = summary.mean.zip(summary.sd)?;
                Some((mean - sd, mean + sd))
            }
        }
    }
}

/// Options of a figure. The default is for a column of a journal, 241 pt wide.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The kind; `None`: chosen from the data.
    pub kind: Option<FigureKind>,
    /// Factor along the x axis (`run` for the runs of several files).
    pub x: Option<String>,
    /// The quantity; `None`: the response of the experiment.
    pub y: Option<Response>,
    /// Factor with a line for each level; `none` for no such factor.
    pub series: Option<String>,
    /// Factor with a panel for each level.
    pub facet: Option<String>,
    /// Logarithmic or linear x axis; `None`: chosen from the data.
    pub log_x: Option<bool>,
    /// Logarithmic or linear y axis; `None`: chosen from the data.
    pub log_y: Option<bool>,
    /// Centre and bar of the trials of a cell.
    pub center: Center,
    /// Whether to draw every trial as a dot as well.
    pub points: bool,
    /// Two levels of a factor to compare, as `iolab compare --by` takes them: `linkage` or `linkage=static,dynamic`.
    pub by: Option<String>,
    /// The smallest change that matters, a share; shaded in the figure of a ratio.
    pub margin: f64,
    /// Service levels of the quantity, with a line at the bound of each.
    pub levels: Vec<ServiceLevel>,
    /// The title above the figure.
    pub title: Option<String>,
    /// Width, points.
    pub width_pt: f64,
    /// Height, points; `None`: chosen from the width.
    pub height_pt: Option<f64>,
    /// Size of the labels at ticks, points; all other text follows from it.
    pub text_pt: f64,
    /// Prefix of the ids in the SVG, which must differ between the figures of one page.
    pub id: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: None,
            x: None,
            y: None,
            series: None,
            facet: None,
            log_x: None,
            log_y: None,
            center: Center::default(),
            points: false,
            by: None,
            margin: 0.05,
            levels: Vec::new(),
            title: None,
            width_pt: 241.0,
            height_pt: None,
            text_pt: 7.0,
            id: "figure".to_owned(),
        }
    }
}

/// Reads a length on paper: `241pt`, `85mm`, `8.5cm`, `3.35in`; a bare number is points. Returns points.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): not a length, or outside the valid range.
pub fn parse_length(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor = match unit.trim() {
        "" | "pt" => 1.0,
        "mm" => 72.0 / 25.4,
        "cm" => 720.0 / 25.4,
        "in" => 72.0,
        _ => f64::NAN,
    };
    let points = number.parse::<f64>().unwrap_or(f64::NAN) * factor;
    if points.is_nan() {
        return Err(Error::usage(format!("'{text}' is not a length"))
            .hint("write points (241pt), millimetres (85mm), centimetres or inches"));
    }
    let (least, most) = LENGTH_RANGE;
    if !(least..=most).contains(&points) {
        return Err(Error::usage(format!("a figure of {text} cannot be drawn"))
            .hint(format!("choose a length from {least}pt to {most}pt")));
    }
    Ok(points)
}

/// The name of the choice of an x axis on the command line.
pub(crate) const LOG_X: &str = "--log-x or --linear-x";

/// The name of the choice of a y axis on the command line.
pub(crate) const LOG_Y: &str = "--log-y or --linear-y";

/// Mark of a kind with lines at service levels.
pub(crate) const LEVELS: &str = "levels";

/// An option that changes what a figure shows: its name on the command line, and whether it differs from its default. Titles and
/// lengths suit every figure.
pub(crate) type Choice = (&'static str, fn(&Options) -> bool);

/// All choices.
pub(crate) const CHOICES: [Choice; 10] = [
    ("--x", |o| o.x.is_some()),
    ("--y", |o| o.y.is_some()),
    ("--series", |o| o.series.is_some()),
    ("--facet", |o| o.facet.is_some()),
    (LOG_X, |o| o.log_x.is_some()),
    (LOG_Y, |o| o.log_y.is_some()),
    ("--center", |o| o.center != Center::default()),
    ("--points", |o| o.points),
    ("--by", |o| o.by.is_some()),
    // The margin decides the verdict of a mark.
    ("--margin", |o| {
        o.margin.total_cmp(&Options::default().margin).is_ne()
    }),
];

impl Options {
    /// Shows the service levels of a rate search. Unless another quantity is requested, shows the quantity of
    /// the first level against the rate, and returns the level. The bound of each level with the same quantity
    /// is a reference line.
    pub fn show_levels(&mut self, levels: &ServiceLevels) -> Option<ServiceLevel> {
        let first = levels.all().first().copied();
        let shown = first.filter(|_| self.y.is_none() && self.kind.is_none());
        if let Some(level) = &shown {
            self.y = Some(response_of(level).unwrap_or(Response::Latency));
            self.kind = Some(FigureKind::Response);
            // Beyond the limit, times grow to the length of a trial: on a linear axis the level would be close to zero.
            self.log_y = self.log_y.or(Some(level.is_of_time()));
        }
        let same = |level: &&ServiceLevel| match &shown {
            Some(shown) => level.subject() == shown.subject(),
            None => self.y.is_some() && self.y == response_of(level),
        };
        let lines = levels.all().iter().filter(same);
        if self.kind.is_none_or(|kind| kind.uses(LEVELS)) {
            self.levels.extend(lines);
        }
        shown
    }

    /// Refuses a choice that a figure of this kind would ignore; `None` for the figure of an observation.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the option and what suits.
    pub fn check(&self, kind: Option<FigureKind>) -> Result<()> {
        let mut choices = CHOICES.iter().filter(|(_, is_asked)| is_asked(self));
        let ignored = choices.find(|(flag, _)| kind.is_none_or(|kind| !kind.uses(flag)));
        let Some((flag, _)) = ignored else {
            return Ok(());
        };
        let (figure, suits) = match kind {
            Some(kind) => {
                let kinds = FigureKind::ALL.iter().filter(|kind| kind.uses(flag));
                let kinds: Vec<&str> = kinds.map(|kind| kind.name()).collect();
                let suits = format!("it suits --kind {}", kinds.join(", "));
                (format!("a figure of the kind {kind}"), suits)
            }
            None => (
                "the figure of an observation".to_owned(),
                "--title, --width and --height suit it".to_owned(),
            ),
        };
        let what = format!("{figure} does not use {}", flag);
        Err(Error::usage(what).hint(format!("leave it out; {suits}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_true() {
        for (text, points) in [
            ("241pt", 241.0),
            ("241", 241.0),
            ("50.8mm", 144.0),
            ("5.08 cm", 144.0),
            ("10in", 720.0),
        ] {
            assert!(
                (parse_length(text).unwrap() - points).abs() < 1e-9,
                "{text}"
            );
        }
        for text in [
            "", "wide", "241px", "-5cm", "1pt", "1e9", "99999in", "1.2.3pt", "nan",
        ] {
            let error = parse_length(text).unwrap_err();
            assert!(error.remedy().is_some(), "{text}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in FigureKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(!kind.words().is_empty(), "{kind}");
        }
        let error = "pie".parse::<FigureKind>().unwrap_err();
        insta::assert_snapshot!(error.remedy().unwrap(), @"it is one of: response, percentiles, load, ratio, p-values, distribution, order, rounds, course, stages, why");
    }
}
