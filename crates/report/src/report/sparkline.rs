//! A small figure of an experiment for the top of a page, linked to its section.

use iolab_analysis::sparkline::{Sparkline, SparklineCurve};
use iolab_figure::sparkline;
use iolab_workload::quantity::counted;

use super::clean;

/// Most targets whose best values are printed next to a figure.
const BEST_MAX: usize = 3;

/// Longest name of a level below a figure, characters.
const LEVEL_MAX: usize = 12;

/// A small figure with its labels.
#[derive(Debug, Clone)]
pub(super) struct Small {
    /// Id of the section that it links to.
    pub(super) id: String,
    pub(super) name: String,
    /// The best value of each target with its unit; with many targets, the best of all.
    pub(super) best: Vec<BestValue>,
    /// First and last level along the axis, empty where they are long, and the factor.
    pub(super) first: String,
    pub(super) factor: String,
    pub(super) last: String,
    pub(super) svg: String,
}

/// The best value of a target.
#[derive(Debug, Clone)]
pub(super) struct BestValue {
    /// The colour of the target; `None` if it needs none.
    pub(super) colour: Option<String>,
    pub(super) text: String,
}

/// Look of a target in all small figures of a page.
#[derive(Debug, Clone)]
pub(super) struct TargetKey {
    pub(super) colour: String,
    pub(super) marker: char,
    pub(super) name: String,
}

impl TargetKey {
    /// The keys of the targets that the small figures show; empty for a page with a single target.
    pub(super) fn all(targets: &[&str], shown: &[&Sparkline]) -> Vec<Self> {
        let is_shown = |target: &str| shown.iter().any(|one| one.targets().contains(&target));
        let several = targets.iter().enumerate();
        let several = several.filter(|(_, target)| targets.len() > 1 && is_shown(target));
        let key = |(place, target): (usize, &&str)| Self {
            colour: sparkline::colour_property(place),
            marker: sparkline::marker_letter(place),
            name: clean(target),
        };
        several.map(key).collect()
    }
}

impl Small {
    /// The figure of a sparkline, on a page with these targets; `None` without a value.
    pub(super) fn of(id: &str, name: &str, outline: &Sparkline, targets: &[&str]) -> Option<Self> {
        let best_of = |curve: &SparklineCurve| {
            let values = curve.points.iter().map(|(_, point)| point.value);
            let worth = |value: &f64| outline.response.worth(*value);
            let best = values.max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
            Some(outline.response.format(best))
        };
        let best = best_of(outline.best()?)?;
        let name = clean(name);
        let factor = clean(&outline.factor);
        let words = format!("{} along {factor}, best {best}", outline.response);
        let of_each = targets.iter().enumerate().filter_map(|(place, target)| {
            Some(BestValue {
                colour: Some(sparkline::colour_property(place)),
                text: best_of(outline.best_of_target(target)?)?,
            })
        });
        let best = match targets.len() {
            2..=BEST_MAX => of_each.collect(),
            _ => vec![BestValue {
                colour: None,
                text: best,
            }],
        };
        let (first, last) = (outline.levels.first()?, outline.levels.last()?);
        let is_long = [first, last]
            .iter()
            .any(|level| level.chars().count() > LEVEL_MAX);
        let (first, factor, last) = match is_long {
            true => {
                let levels = counted(outline.levels.len(), "level");
                (String::new(), format!("{factor}, {levels}"), String::new())
            }
            false => (clean(first), factor, clean(last)),
        };
        Some(Self {
            id: id.to_owned(),
            svg: sparkline::svg(outline, targets, &format!("overview-{id}"), &name, &words),
            name,
            best,
            first,
            factor,
            last,
        })
    }
}
