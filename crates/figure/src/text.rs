//! The width of text: metrics of the font that every figure uses.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The bundled font, Noto Sans: layout measures with it, and PNG and PDF embed it.
pub(super) const FONT: &[u8] = ttf_noto_sans::REGULAR;
/// Font families of an SVG, in order. Where the first is missing, each text keeps its length in that.
pub(super) const FAMILIES: &str = "Noto Sans, Open Sans, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT, 0).expect("the font is part of the build"));

/// Height of a capital letter, relative to the font size.
pub(super) const CAP_HEIGHT: f64 = 0.714;
/// Depth of letters below the baseline, relative to the font size.
pub(super) const DESCENT: f64 = 0.2;
/// Height of a line, relative to the font size: the distance that labels need.
pub(super) const LINE_HEIGHT: f64 = 1.2;

/// Width of a character missing in the font, in ems: SVG viewers use another font, PNG and PDF show a box.
pub(super) const MISSING_WIDTH: f64 = 0.67;

/// A glyph of the font.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    /// Its number in the font; 0 is the box for missing characters.
    pub(super) id: u16,
    /// Distance to the next one, in ems.
    pub(super) advance: f64,
    pub(super) character: char,
}

/// The glyphs of a text, one for each character.
pub(super) fn glyphs(text: &str) -> impl Iterator<Item = Glyph> {
    text.chars().map(|character| {
        let known = FACE.glyph_index(character);
        let known = known.and_then(|id| Some((id.0, FACE.glyph_hor_advance(id)?)));
        let (id, advance) = known.map_or((0, MISSING_WIDTH), |(id, units)| {
            (id, f64::from(units) / units_per_em())
        });
        Glyph {
            id,
            advance,
            character,
        }
    })
}

/// Draws a glyph in units of the font.
pub(super) fn outline(id: u16, builder: &mut dyn OutlineBuilder) {
    // A space has no outline.
    let _ = FACE.outline_glyph(GlyphId(id), builder);
}

/// Units of the font in an em.
pub(super) fn units_per_em() -> f64 {
    f64::from(FACE.units_per_em())
}

/// The bounding box of all glyphs, in ems: left, bottom, right, top.
pub(super) fn bounds() -> [f64; 4] {
    let all = FACE.global_bounding_box();
    [all.x_min, all.y_min, all.x_max, all.y_max].map(|units| f64::from(units) / units_per_em())
}

/// Width of a text in points when it is set at `size` points.
pub(super) fn width(text: &str, size: f64) -> f64 {
    glyphs(text).map(|glyph| glyph.advance).sum::<f64>() * size
}

/// The text, truncated with an ellipsis where it is wider than `room` points.
pub(super) fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut: Vec<char> = text.chars().collect();
    while cut.pop().is_some() {
        let shortened = format!("{}…", cut.iter().collect::<String>().trim_end());
        if width(&shortened, size) <= room {
            return shortened;
        }
    }
    String::new()
}

/// The text in lines of at most `room` points, broken at spaces; a single longer word is truncated.
pub(super) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            let longer = format!("{line} {word}");
            if width(&longer, size) <= room {
                *line = longer;
                continue;
            }
        }
        lines.push(fitted(word, size, room));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        // Noto Sans: digits have 572 thousandths of an em each, as tables need them.
        assert!((width("0", 1000.0) - 572.0).abs() < 1.0);
        assert!((width("01", 10.0) - 2.0 * width("7", 10.0)).abs() < 1e-9);
        assert!(width("il", 7.0) < width("mm", 7.0));
        assert_eq!(width("", 7.0), 0.0);
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        assert_eq!(fitted("64 KiB", 7.0, 100.0), "64 KiB");
        let cut = fitted("a very long level of a factor", 7.0, 50.0);
        assert!(cut.ends_with('…') && width(&cut, 7.0) <= 50.0, "{cut}");
        assert_eq!(fitted("wide", 7.0, 1.0), "");
    }

    #[test]
    fn lines_break_at_spaces() {
        let lines = wrapped("median of ten trials with its interval", 7.0, 60.0);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| width(line, 7.0) <= 60.0));
        assert_eq!(lines.join(" "), "median of ten trials with its interval");
    }
}
