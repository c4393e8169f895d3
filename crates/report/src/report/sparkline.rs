//! A small figure of an experiment for the top of a page, linked to its section.

use iolab_analysis::sparkline::{Sparkline, SparklineCurve};
use iolab_figure::sparkline;
use iolab_workload::units::counted;

use super::clean;
use crate::block::{Contents, SmallFigure, TargetKey};
use crate::overview::Overview;

/// Most targets whose best values are printed next to a figure.
const BEST_MAX: usize = 3;

/// Longest name of a level below a figure, characters.
const LEVEL_MAX: usize = 12;

/// The small figures of an overview; `place` gives the name and the id of the part about a run.
pub(super) fn contents(
    overview: &Overview<'_>,
    place: impl Fn(usize) -> Option<(String, String)>,
) -> Contents {
    let targets: Vec<&str> = overview.targets.iter().map(String::as_str).collect();
    let all = &overview.overlaid_outlines;
    let outlines: Vec<&Sparkline> = all.iter().map(|(.., outline)| outline).collect();
    let figures = all.iter().filter_map(|(number, name, outline)| {
        let (of_part, id) = place(*number)?;
        let alike = all.iter().filter(|(_, other, _)| other == name);
        let name = if alike.count() == 1 { name } else { &of_part };
        figure(&id, name, outline, &targets)
    });
    Contents {
        figures: figures.collect(),
        keys: keys(&targets, &outlines),
    }
}

/// The keys of the targets that the small figures show; empty for a page with a single target.
fn keys(targets: &[&str], shown: &[&Sparkline]) -> Vec<TargetKey> {
    let is_shown = |target: &str| shown.iter().any(|one| one.targets().contains(&target));
    let several = targets.iter().enumerate();
    let several = several.filter(|(_, target)| targets.len() > 1 && is_shown(target));
    let key = |(place, target): (usize, &&str)| TargetKey {
        colour: sparkline::colour_property(place),
        marker: sparkline::marker_letter(place),
        name: clean(target),
    };
    several.map(key).collect()
}

/// The figure of a sparkline, on a page with these targets; `None` without a value.
fn figure(id: &str, name: &str, outline: &Sparkline, targets: &[&str]) -> Option<SmallFigure> {
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
        let colour = sparkline::colour_property(place);
        Some((Some(colour), best_of(outline.best_of_target(target)?)?))
    });
    let best = match targets.len() {
        2..=BEST_MAX => of_each.collect(),
        _ => vec![(None, best)],
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
    Some(SmallFigure {
        id: id.to_owned(),
        svg: sparkline::svg(outline, targets, &format!("overview-{id}"), &name, &words),
        name,
        best,
        first,
        factor,
        last,
    })
}
