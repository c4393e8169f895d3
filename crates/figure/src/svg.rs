//! Writes a scene as SVG. Every colour is also in an attribute, which all programs read; classes let a page override them with
//! the custom properties of [`STYLE`].

use std::fmt::Write;

use super::labels::decimal;
use super::model::FigureModel;
use super::scene::{Anchor, GRID, INK, Item, MUTED, PAPER, Paint, Scene, Segment, Shape, Text};
use super::{scene, text};
use iolab_workload::escape_control::escape_control;

/// Style sheet for pages with figures: the colours of all figures as custom properties, for light and dark. A page may override
/// the properties afterwards.
pub fn style() -> String {
    let theme = |dark: usize, series: [&str; 7]| {
        let roles = [
            ("ink", INK),
            ("muted", MUTED),
            ("grid", GRID),
            ("paper", PAPER),
        ];
        let roles = roles.map(|(name, colours)| format!("--fig-{name}:{}", colours[dark]));
        let series = series.iter().enumerate();
        let series = series.map(|(place, colour)| format!("--fig-c{place}:{colour}"));
        let all: Vec<String> = roles.into_iter().chain(series).collect();
        all.join(";")
    };
    let (light, dark) = (theme(0, scene::SERIES), theme(1, scene::SERIES_DARK));
    let class = |place| format!(".iolab-figure .c{place}{{color:var(--fig-c{place})}}\n");
    let classes: String = (0..scene::SERIES.len()).map(class).collect();
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{classes}\
         .iolab-figure text.ink{{fill:var(--fig-ink)}}\n\
         .iolab-figure text.muted{{fill:var(--fig-muted)}}\n\
         .iolab-figure path.ink{{stroke:var(--fig-ink)}}\n\
         .iolab-figure path.muted{{stroke:var(--fig-muted)}}\n\
         .iolab-figure path.grid{{stroke:var(--fig-grid)}}\n\
         .iolab-figure .paper{{fill:var(--fig-paper)}}\n\
         .iolab-figure path.hatch.paper{{fill:none;stroke:var(--fig-paper)}}\n\
         .iolab-figure .shade{{fill:var(--fig-muted)}}\n"
    )
}

/// Writes the scene of a model. Deterministic. The ids begin with `id`, which must differ between the figures of one page.
pub(super) fn write(scene: &Scene, id: &str, title: &str, model: &FigureModel) -> String {
    let id = identifier(id);
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"iolab-figure\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\" data-unit=\"{unit}\" \
         font-family=\"{families}\" fill=\"none\" stroke-linejoin=\"round\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n",
        unit = escaped(&model.unit),
        families = text::FAMILIES,
        title = escaped(title),
        description = escaped(&model.description),
    );
    for item in &scene.items {
        match item {
            Item::Open {
                class,
                series,
                data,
                words,
            } => {
                let colour = series.map(scene::colour);
                let series = colour.map_or_else(String::new, |colour| {
                    format!(" c{colour}\" color=\"{}", scene::SERIES[colour])
                });
                let _ = write!(out, "<g class=\"{class}{series}\"");
                for (name, value) in data {
                    let _ = write!(out, " data-{name}=\"{}\"", escaped(value));
                }
                out.push('>');
                if !words.is_empty() {
                    let _ = write!(out, "<title>{}</title>", escaped(words));
                }
                out.push('\n');
            }
            Item::Close => out.push_str("</g>\n"),
            Item::Shape(shape) => shape_to(&mut out, shape),
            Item::Text(text) => text_to(&mut out, text),
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Replaces characters other than letters, digits and dashes, for ids.
fn identifier(text: &str) -> String {
    match text {
        "" => "figure".to_owned(),
        text => text.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    }
}

fn shape_to(out: &mut String, shape: &Shape) {
    // Other filled areas have a class of their own.
    let fill = shape.fill.filter(|paint| *paint == Paint::Paper);
    let stroke = shape.stroke.as_ref();
    let paints = [fill, stroke.map(|stroke| stroke.paint)].map(|paint| paint.map_or("", class));
    let classes = classes(&[shape.class, paints[0], paints[1]]);
    let _ = write!(out, "<path{classes} d=\"{}\"", path(&shape.outline));
    if let Some(paint) = shape.fill {
        let _ = write!(out, " fill=\"{}\"", paint.colour("currentColor"));
    }
    if let Some(stroke) = stroke {
        let colour = stroke.paint.colour("currentColor");
        let width = number(stroke.width);
        let _ = write!(out, " stroke=\"{colour}\" stroke-width=\"{width}\"");
        if !stroke.dash.is_empty() {
            let _ = write!(out, " stroke-dasharray=\"{}\"", stroke.dash);
        }
        if stroke.is_round {
            out.push_str(" stroke-linecap=\"round\"");
        }
    }
    if shape.opacity < 1.0 {
        let _ = write!(out, " opacity=\"{}\"", number(shape.opacity));
    }
    out.push_str("/>\n");
}

fn text_to(out: &mut String, text: &Text) {
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (x, y) = (number(text.x), number(text.y));
    let turn = match text.upwards {
        true => format!(" transform=\"rotate(-90 {x} {y})\""),
        false => String::new(),
    };
    // The length keeps the text in its space where a viewer uses a wider font.
    let _ = writeln!(
        out,
        "<text{} x=\"{x}\" y=\"{y}\" font-size=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{anchor}{turn} \
         fill=\"{}\">{}</text>",
        classes(&[class(text.paint)]),
        number(text.size),
        number(text.length()),
        text.paint.colour("currentColor"),
        escaped(&text.text)
    );
}

/// The class of a paint.
fn class(paint: Paint) -> &'static str {
    match paint {
        Paint::Ink => "ink",
        Paint::Muted => "muted",
        Paint::Grid => "grid",
        Paint::Paper => "paper",
        Paint::Series => "",
    }
}

fn classes(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.retain(|name| !name.is_empty());
    match names.is_empty() {
        true => String::new(),
        false => format!(" class=\"{}\"", names.join(" ")),
    }
}

/// An outline as `d` has it.
fn path(outline: &[Segment]) -> String {
    let place = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
    let segment = |segment: &Segment| match segment {
        Segment::Move(to) => format!("M{}", place(*to)),
        Segment::Line(to) => format!("L{}", place(*to)),
        Segment::Curve(points) => format!("C{}", points.map(place).join(" ")),
        Segment::Close => "z".to_owned(),
    };
    outline.iter().map(segment).collect()
}

/// A number with at most two decimals, a fortieth of a millimetre.
fn number(value: f64) -> String {
    decimal(value, 2)
}

/// Escapes any text for XML.
pub fn escaped(text: &str) -> String {
    let text = escape_control(text).replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    let text = text.replace('"', "&quot;").replace('\'', "&#39;");
    // Not valid in XML.
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (100.5, "100.5")] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn hostile_texts_are_escaped() {
        let hostile = "</text><script>alert('1')</script>&\"\u{1b}\u{ffff}";
        let safe = escaped(hostile);
        assert!(
            !safe.contains(['<', '>', '"', '\'', '\u{1b}', '\u{ffff}']),
            "{safe}"
        );
        assert_eq!(identifier("a b\"/><x"), "a-b----x");
        assert_eq!(identifier(""), "figure");
    }
}
