//! Writes a scene as SVG. Every colour is also in an attribute, which all programs read; classes let a page override them with
//! the custom properties of [`STYLE`].

use std::fmt::Write;

use super::scene;
use super::scene::{Anchor, Frame, Item, Paint, Scene, Text};
use super::scene::{
    GRID, GRID_DARK, INK, INK_DARK, MUTED, MUTED_DARK, Marker, PAPER, PAPER_DARK, corners,
};
use super::text;
use iolab_workload::escape_control::escape_control;

/// Width of the outline of a marker, points.
pub(super) const OUTLINE: f64 = 0.8;
/// Opacity of a dot, 0 to 1.
pub(super) const DOTS_OPACITY: f64 = 0.45;

/// Style sheet for pages with figures: the colours of all figures as custom properties, for light and dark. A page may override
/// the properties afterwards.
pub fn style() -> String {
    let mut light =
        format!("--fig-ink:{INK};--fig-muted:{MUTED};--fig-grid:{GRID};--fig-paper:{PAPER}");
    let mut dark = format!(
        "--fig-ink:{INK_DARK};--fig-muted:{MUTED_DARK};--fig-grid:{GRID_DARK};--fig-paper:{PAPER_DARK}"
    );
    let mut classes = String::new();
    for (place, (day, night)) in scene::SERIES.iter().zip(scene::SERIES_DARK).enumerate() {
        let _ = write!(light, ";--fig-c{place}:{day}");
        let _ = write!(dark, ";--fig-c{place}:{night}");
        let _ = writeln!(
            classes,
            ".iolab-figure .c{place}{{color:var(--fig-c{place})}}"
        );
    }
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

/// Metadata of an SVG.
pub(super) struct Words<'a> {
    /// Prefix of its ids, which must differ between the figures of one page.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) unit: &'a str,
}

/// Writes a scene. Deterministic.
pub(super) fn write(scene: &Scene, words: &Words<'_>) -> String {
    let id = identifier(words.id);
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"iolab-figure\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\" data-unit=\"{unit}\" \
         font-family=\"{families}\" fill=\"none\" stroke-linejoin=\"round\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n",
        unit = escaped(words.unit),
        families = text::FAMILIES,
        title = escaped(words.title),
        description = escaped(words.description),
    );
    for item in &scene.items {
        item_to(&mut out, item);
    }
    out.push_str("</svg>\n");
    out
}

/// Replaces characters other than letters, digits and dashes, for ids.
fn identifier(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if kept.is_empty() {
        "figure".to_owned()
    } else {
        kept
    }
}

fn item_to(out: &mut String, item: &Item) {
    match item {
        Item::Open {
            class,
            series,
            data,
            words,
        } => open(out, class, *series, data, words),
        Item::Close => out.push_str("</g>\n"),
        Item::Path {
            class,
            points,
            width,
            dash,
            paint,
        } => stroke(out, class, &outline(points), *paint, *width, dash),
        Item::Area {
            class,
            points,
            opacity,
            paint,
        } => {
            let (_, colour) = painted(*paint);
            let _ = writeln!(
                out,
                "<path{} d=\"{}z\" fill=\"{colour}\" fill-opacity=\"{}\"/>",
                classes(&[class]),
                outline(points),
                number(*opacity),
            );
        }
        Item::Rectangle {
            class,
            frame,
            fill,
            outlined,
        } => rectangle(out, class, frame, *fill, *outlined),
        Item::Hatch {
            frame,
            hatch,
            apart,
            width,
            paint,
        } => {
            let lines = scene::lines(*frame, *hatch, *apart);
            let lines: String = lines.iter().map(|line| outline(line)).collect();
            stroke(out, "hatch", &lines, *paint, *width, "");
        }
        Item::Dots { points, diameter } => dots(out, points, *diameter),
        Item::Mark {
            x,
            y,
            radius,
            marker,
            hollow,
        } => mark(out, (*x, *y), *radius, *marker, *hollow),
        Item::Text(text) => text_to(out, text),
    }
}

/// Lines along a path, as SVG's `d` has it.
fn stroke(out: &mut String, class: &str, path: &str, paint: Paint, width: f64, dash: &str) {
    let (name, colour) = painted(paint);
    let dash = if dash.is_empty() {
        String::new()
    } else {
        format!(" stroke-dasharray=\"{dash}\"")
    };
    let _ = writeln!(
        out,
        "<path{} d=\"{path}\" stroke=\"{colour}\" stroke-width=\"{}\"{dash}/>",
        classes(&[class, name]),
        number(width),
    );
}

fn rectangle(out: &mut String, class: &str, frame: &Frame, fill: Paint, outlined: bool) {
    let (name, colour) = painted(fill);
    let stroke = if outlined {
        format!(" stroke=\"currentColor\" stroke-width=\"{OUTLINE}\"")
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<rect{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"{stroke}/>",
        classes(&[class, name]),
        number(frame.left),
        number(frame.top),
        number(frame.width()),
        number(frame.height()),
    );
}

fn dots(out: &mut String, points: &[(f64, f64)], diameter: f64) {
    let mut path = String::new();
    for (x, y) in points {
        let _ = write!(path, "M{} {}h0", number(*x), number(*y));
    }
    let _ = writeln!(
        out,
        "<path class=\"trials\" d=\"{path}\" stroke=\"currentColor\" stroke-opacity=\"{DOTS_OPACITY}\" \
         stroke-width=\"{}\" stroke-linecap=\"round\"/>",
        number(diameter)
    );
}

fn mark(out: &mut String, (x, y): (f64, f64), radius: f64, marker: Marker, hollow: bool) {
    let paint = if hollow {
        format!(
            "class=\"point hollow paper\" fill=\"{PAPER}\" stroke=\"currentColor\" stroke-width=\"{OUTLINE}\""
        )
    } else {
        "class=\"point\" fill=\"currentColor\"".to_owned()
    };
    let _ = match corners(marker) {
        None => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {paint}/>",
            number(x),
            number(y),
            number(radius)
        ),
        Some(corners) => {
            let place = |(dx, dy): &(f64, f64)| (x + dx * radius, y + dy * radius);
            let points: Vec<(f64, f64)> = corners.iter().map(place).collect();
            writeln!(out, "<path d=\"{}z\" {paint}/>", outline(&points))
        }
    };
}

fn open(
    out: &mut String,
    class: &str,
    series: Option<usize>,
    data: &[(&'static str, String)],
    words: &str,
) {
    let _ = match series {
        Some(place) => {
            let colour = scene::colour(place);
            write!(
                out,
                "<g class=\"{class} c{colour}\" color=\"{}\"",
                scene::SERIES[colour]
            )
        }
        None => write!(out, "<g class=\"{class}\""),
    };
    for (name, value) in data {
        let _ = write!(out, " data-{name}=\"{}\"", escaped(value));
    }
    out.push('>');
    if !words.is_empty() {
        let _ = write!(out, "<title>{}</title>", escaped(words));
    }
    out.push('\n');
}

fn text_to(out: &mut String, text: &Text) {
    let (name, colour) = painted(text.paint);
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (x, y) = (number(text.x), number(text.y));
    let turn = if text.upwards {
        format!(" transform=\"rotate(-90 {x} {y})\"")
    } else {
        String::new()
    };
    // The length keeps the text in its space where a viewer uses a wider font.
    let _ = writeln!(
        out,
        "<text{} x=\"{x}\" y=\"{y}\" font-size=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{anchor}{turn} \
         fill=\"{colour}\">{}</text>",
        classes(&[name]),
        number(text.size),
        number(text.length()),
        escaped(&text.text)
    );
}

/// The class and the colour of a paint.
pub(super) fn painted(paint: Paint) -> (&'static str, &'static str) {
    match paint {
        Paint::Ink => ("ink", INK),
        Paint::Muted => ("muted", MUTED),
        Paint::Grid => ("grid", GRID),
        Paint::Paper => ("paper", PAPER),
        Paint::Series => ("", "currentColor"),
    }
}

fn classes(names: &[&str]) -> String {
    let names: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", names.join(" "))
    }
}

fn outline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(
            path,
            "{}{} {}",
            if i == 0 { 'M' } else { 'L' },
            number(*x),
            number(*y)
        );
    }
    path
}

/// A number with at most two decimals, a fortieth of a millimetre.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Escapes any text for XML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape_control(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not valid in XML.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
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
