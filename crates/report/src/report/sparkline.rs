//! A small figure of a run for the top of a page, linked to its section.

use iolab_analysis::sparkline::Sparkline;
use iolab_figure::sparkline;

use super::clean;

/// A small figure with its labels.
#[derive(Debug, Clone)]
pub(super) struct Small {
    /// Id of the section that it links to.
    pub(super) id: String,
    pub(super) name: String,
    /// The best value with its unit.
    pub(super) best: String,
    /// First and last level along the axis, and what lies between.
    pub(super) first: String,
    pub(super) factor: String,
    pub(super) last: String,
    pub(super) svg: String,
}

impl Small {
    /// The figure of a sparkline; `None` without a value.
    pub(super) fn of(id: &str, name: &str, outline: &Sparkline) -> Option<Self> {
        let best = outline.best()?.points.iter().map(|(_, point)| point.value);
        let worth = |value: &f64| outline.response.worth(*value);
        let best = best.max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
        let best = outline.response.format(best);
        let name = clean(name);
        let factor = clean(&outline.factor);
        let words = format!("{} along {factor}, best {best}", outline.response);
        Some(Self {
            id: id.to_owned(),
            svg: sparkline::svg(outline, &format!("overview-{id}"), &name, &words),
            name,
            best,
            first: clean(outline.levels.first()?),
            factor,
            last: clean(outline.levels.last()?),
        })
    }
}
