//! The figure of one experiment: one for paper, and the variants for a page.

use super::{Input, clean};
use iolab_figure::{Center, Figure, FigureKind, FigureRun, Options, default_kind, draw};

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);
/// Width and text size on paper, points: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// A figure in several variants, of which the page shows one.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// A description of the figure.
    pub(super) words: String,
    pub(super) variants: Vec<Variant>,
}

/// One way to draw the data.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// `log` or `linear`: the axis of the response. Empty where there is no choice.
    pub(super) scale: &'static str,
    /// `median` or `mean`. Empty where there is no choice.
    pub(super) center: &'static str,
    pub(super) shown: bool,
    pub(super) svg: String,
}

/// The figure for paper; `None` where the data makes none.
pub(super) fn on_paper(input: &Input) -> Option<Figure> {
    draw(&[run(input)], &paper_options()).ok()
}

/// Options for figures on paper.
pub(super) fn paper_options() -> Options {
    let (width_pt, text_pt) = PAPER;
    Options {
        width_pt,
        text_pt,
        ..Options::default()
    }
}

/// Options for figures on a page, whose ids begin with `id`.
pub(super) fn page_options(id: &str) -> Options {
    let (width_pt, text_pt) = PAGE;
    Options {
        id: id.to_owned(),
        width_pt,
        text_pt,
        ..Options::default()
    }
}

/// The figure for a page, whose ids begin with `id`; `None` where the data makes none.
pub(super) fn on_page(id: &str, input: &Input) -> Option<Picture> {
    let runs = [run(input)];
    let variant = |scale: &'static str, center: &'static str| {
        let options = Options {
            log_y: (!scale.is_empty()).then_some(scale == "log"),
            center: match center {
                "mean" => Center::Mean,
                _ => Center::Median,
            },
            ..page_options(&format!("{id}-{scale}{center}"))
        };
        let figure = draw(&runs, &options).ok()?;
        let variant = Variant {
            scale,
            center,
            shown: false,
            svg: figure.svg(),
        };
        Some((figure, variant))
    };
    let (first, mut only) = variant("", "")?;
    let mut picture = Picture {
        words: clean(first.description()),
        variants: Vec::new(),
    };
    if default_kind(&runs) == FigureKind::Response {
        for (scale, center) in [
            ("log", "median"),
            ("linear", "median"),
            ("log", "mean"),
            ("linear", "mean"),
        ] {
            if let Some((figure, mut variant)) = variant(scale, center) {
                variant.shown = figure.same_picture(&first);
                picture.variants.push(variant);
            }
        }
    }
    // Without exactly one default variant, the page offers no choice.
    if picture.variants.iter().filter(|v| v.shown).count() != 1 {
        only.shown = true;
        picture.variants = vec![only];
    }
    Some(picture)
}

fn run(input: &Input) -> FigureRun<'_> {
    FigureRun {
        bends: Some(&input.interpretation.bends),
        ..FigureRun::new(&input.run.analysis().experiment, &input.run)
    }
}
