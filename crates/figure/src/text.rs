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

/// The glyphs of the Latin characters, of which nearly every text consists: the font is searched for each only once.
static LATIN: LazyLock<Vec<Glyph>> = LazyLock::new(|| ('\0'..='\u{ff}').map(found).collect());

/// A glyph of the font.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    /// Number of the glyph in the font; 0 is the box for missing characters.
    pub(super) id: u16,
    /// Distance to the next one, in ems.
    pub(super) advance: f64,
    pub(super) character: char,
}

/// The glyphs of a text, one for each character.
pub(super) fn glyphs(text: &str) -> impl Iterator<Item = Glyph> {
    text.chars().map(|character| {
        let known = LATIN.get(character as usize);
        known.copied().unwrap_or_else(|| found(character))
    })
}

/// The glyph of a character, searched in the font.
fn found(character: char) -> Glyph {
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
    let shortened = |(end, _)| format!("{}…", text[..end].trim_end());
    first_fitting(text, text.char_indices().rev().map(shortened), size, room)
}

/// The text, or its first shortened form of at most `room` points.
fn first_fitting(
    text: &str,
    shortened: impl Iterator<Item = String>,
    size: f64,
    room: f64,
) -> String {
    let mut all = std::iter::once(text.to_owned()).chain(shortened);
    let fitting = all.find(|text| width(text, size) <= room);
    fitting.unwrap_or_default()
}

/// A label with the size at which it is written: smaller where it is wider than `room` points, at least `least` of `size`; where
/// that is not enough, cut before its unit.
pub(super) fn fitted_label(label: &str, size: f64, least: f64, room: f64) -> (String, f64) {
    let wanted = size * room / width(label, size).max(1.0);
    let size = wanted.clamp(size * least, size);
    if width(label, size) <= room + 1e-9 {
        return (label.to_owned(), size);
    }
    let unit = label.rfind(" (").filter(|_| label.ends_with(')'));
    let (name, unit) = label.split_at(unit.unwrap_or(label.len()));
    let text = match fitted(name, size, room - width(unit, size)).as_str() {
        "" => fitted(label, size, room),
        name => format!("{name}{unit}"),
    };
    (text, size)
}

/// A name, with an ellipsis in its middle where it is wider than `room` points: names of disks and paths differ at their ends.
pub(super) fn fitted_name(name: &str, size: f64, room: f64) -> String {
    let all: Vec<char> = name.chars().collect();
    let shortened = |kept: usize| {
        let (head, tail) = (kept.div_ceil(2), all.len() - kept / 2);
        let [head, tail] = [&all[..head], &all[tail..]].map(String::from_iter);
        format!("{head}…{tail}")
    };
    first_fitting(name, (1..all.len()).rev().map(shortened), size, room)
}

/// The text in lines of at most `room` points, broken at spaces, and within a word only where it is longer than a line.
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
        lines.extend(broken(word, size, room));
    }
    lines
}

/// A word in lines of at most `room` points, broken before a part of a path or after a sign within a name, else anywhere.
fn broken(word: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = word;
    while width(rest, size) > room {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let fitting = ends.take_while(|end| width(&rest[..*end], size) <= room);
        let fitting: Vec<usize> = fitting.collect();
        let is_seam = |end: &&usize| {
            let (line, after) = rest.split_at(**end);
            after.starts_with('/') || line.ends_with(['-', '_', ','])
        };
        let seam = fitting.iter().rfind(is_seam);
        let Some(end) = seam.or(fitting.last()) else {
            return vec![fitted(word, size, room)];
        };
        let (line, after) = rest.split_at(*end);
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_axes_keep_their_unit() {
        let label = "Throughput of reads (MB/s)";
        let full = width(label, 8.0);
        let of = |share: f64| fitted_label(label, 8.0, 0.75, full * share);
        assert_eq!(of(1.0), (label.to_owned(), 8.0));
        let (smaller, size) = of(0.8);
        assert_eq!(smaller, label);
        assert!((size - 6.4).abs() < 1e-9);
        assert_eq!(of(0.6), ("Throughput… (MB/s)".to_owned(), 6.0));
        assert!(width(&of(0.1).0, 6.0) <= full * 0.1);
    }

    #[test]
    fn widths_are_those_of_the_font() {
        // Noto Sans: digits have 572 thousandths of an em each, as tables need them.
        assert!((width("0", 1000.0) - 572.0).abs() < 1.0);
        assert!((width("01", 10.0) - 2.0 * width("7", 10.0)).abs() < 1e-9);
        assert!(width("il", 7.0) < width("mm", 7.0));
        assert_eq!(width("", 7.0), 0.0);
    }

    #[test]
    fn long_name_is_broken_and_keeps_every_letter() {
        for name in [
            "/mnt/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0AAAAAA:/mnt/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0BBBBBB",
            &"x".repeat(200),
            "äöü/ßßßßßßßßßßßßßßßßßßßßßßßßßßßß",
        ] {
            let lines = wrapped(name, 7.0, 90.0);
            assert!(lines.len() > 1);
            assert!(lines.iter().all(|line| width(line, 7.0) <= 90.0));
            assert_eq!(lines.concat(), name);
        }
        let lines = wrapped("/mnt/disks/first/second", 7.0, 70.0);
        assert_eq!(lines, ["/mnt/disks/first", "/second"]);
    }

    #[test]
    fn shortened_name_keeps_its_beginning_and_end() {
        assert_eq!(fitted_name("loop0", 7.0, 100.0), "loop0");
        let [a, b] = ["A", "B"].map(|end| format!("/mnt/by-id/ata-WDC_WD40EFRX_WCC7K0{end}"));
        let [a, b] = [&a, &b].map(|name| fitted_name(name, 7.0, 60.0));
        assert!(
            a.starts_with("/mnt") && a.contains('…') && a.ends_with('A'),
            "{a}"
        );
        assert!(width(&a, 7.0) <= 60.0);
        assert_ne!(a, b);
        assert_eq!(fitted_name("wide", 7.0, 1.0), "");
    }
}
