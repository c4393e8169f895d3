//! Writes a scene as PDF: one page of its physical size, lines as lines, text as text. Section numbers refer to
//! ISO 32000-1.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use iolab_record::digest;
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};
use subsetter::{GlyphRemapper, subset};

use super::labels::decimal;
use super::scene::{self, Item, Scene, Segment, Shape, Text};
use super::text;

/// Numbers of the objects, in the order of the file.
const CATALOG: usize = 1;
const PAGES: usize = 2;
const PAGE: usize = 3;
const CONTENT: usize = 4;
const FONT: usize = 5;
const GLYPHS: usize = 6;
const DESCRIPTOR: usize = 7;
const FONT_FILE: usize = 8;
const TO_UNICODE: usize = 9;
const INFORMATION: usize = 10;

/// A page of the scene's size with this title, its text as text, and the needed part of the font.
///
/// # Errors
/// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be made.
pub(super) fn pdf(scene: &Scene, title: &str) -> Result<Vec<u8>> {
    let mut page = Page {
        height: scene.height,
        // Round joins.
        content: "1 j\n".to_owned(),
        glyphs: GlyphRemapper::new(),
        shown: vec![(text::MISSING_WIDTH, None)],
        percents: Vec::new(),
    };
    for (item, series) in scene.drawn() {
        match item {
            Item::Shape(shape) => page.shape(shape, series),
            Item::Text(text) => page.text(text, series),
            Item::Open { .. } | Item::Close => {}
        }
    }
    let font = subset(text::FONT, 0, &page.glyphs)
        .map_err(|error| Error::failed(format!("the PDF cannot be made: {error}")))?;
    let name = page.font_name();
    let mut file = File {
        // The bytes of the second line mark the file as binary for transfer programs (7.5.2).
        bytes: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec(),
        starts: Vec::new(),
    };
    file.object(&format!("<</Type/Catalog/Pages {PAGES} 0 R>>"));
    file.object(&format!("<</Type/Pages/Kids[{PAGE} 0 R]/Count 1>>"));
    file.object(&format!(
        "<</Type/Page/Parent {PAGES} 0 R/MediaBox [0 0 {} {}]/Contents {CONTENT} 0 R\
         /Resources<</Font<</F {FONT} 0 R>>/ExtGState<<{}>>>>>>",
        number(scene.width),
        number(scene.height),
        page.opacities(),
    ));
    file.stream("", page.content.as_bytes());
    // A font of glyphs that are named by their numbers (9.7).
    let widths = page.shown.iter().map(|(width, _)| number(width * 1e3));
    let widths: Vec<String> = widths.collect();
    file.object(&format!(
        "<</Type/Font/Subtype/Type0/BaseFont/{name}/Encoding/Identity-H/DescendantFonts[{GLYPHS} 0 R]\
         /ToUnicode {TO_UNICODE} 0 R>>"
    ));
    file.object(&format!(
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/{name}/CIDToGIDMap/Identity\
         /CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>\
         /FontDescriptor {DESCRIPTOR} 0 R/W[0[{}]]>>",
        widths.join(" ")
    ));
    let [left, bottom, right, top] = text::bounds();
    file.object(&format!(
        "<</Type/FontDescriptor/FontName/{name}/Flags 4/FontBBox[{} {} {} {}]/ItalicAngle 0/Ascent {}/Descent {}\
         /CapHeight {}/StemV 80/FontFile2 {FONT_FILE} 0 R>>",
        number(left * 1e3),
        number(bottom * 1e3),
        number(right * 1e3),
        number(top * 1e3),
        number(top * 1e3),
        number(bottom * 1e3),
        number(text::CAP_HEIGHT * 1e3),
    ));
    file.stream(&format!("/Length1 {}", font.len()), &font);
    file.stream("", page.to_unicode().as_bytes());
    file.object(&format!(
        "<</Title <feff{}>/Producer(iolab)>>",
        utf16(title)
    ));
    Ok(file.finish())
}

/// The content of a page, and the resources that it uses.
struct Page {
    /// Height of the page; PDF coordinates start at the lower edge.
    height: f64,
    content: String,
    glyphs: GlyphRemapper,
    /// Width in ems and character of each glyph used, by its number in this font.
    shown: Vec<(f64, Option<char>)>,
    /// The opacities used, in percent.
    percents: Vec<u32>,
}

impl Page {
    fn place(&self, (x, y): (f64, f64)) -> String {
        format!("{} {}", number(x), number(self.height - y))
    }

    fn shape(&mut self, shape: &Shape, series: &str) {
        let how = match (shape.fill, &shape.stroke) {
            (None, None) => return,
            (Some(_), None) => "f",
            (None, Some(_)) => "S",
            (Some(_), Some(_)) => "B",
        };
        let mut ops = String::from("q ");
        let percent = (shape.opacity * 100.0).round() as u32;
        if percent < 100 {
            if !self.percents.contains(&percent) {
                self.percents.push(percent);
            }
            let _ = write!(ops, "/O{percent} gs ");
        }
        if let Some(paint) = shape.fill {
            let _ = write!(ops, "{} rg ", channels(paint.colour(series)));
        }
        if let Some(stroke) = &shape.stroke {
            let colour = channels(stroke.paint.colour(series));
            let (width, cap) = (number(stroke.width), u8::from(stroke.is_round));
            let _ = write!(ops, "{colour} RG {width} w {cap} J [{}] 0 d ", stroke.dash);
        }
        for segment in &shape.outline {
            let _ = match segment {
                Segment::Move(to) => write!(ops, "{} m ", self.place(*to)),
                Segment::Line(to) => write!(ops, "{} l ", self.place(*to)),
                Segment::Curve(points) => {
                    write!(ops, "{} c ", points.map(|to| self.place(to)).join(" "))
                }
                Segment::Close => write!(ops, "h "),
            };
        }
        let _ = writeln!(self.content, "{ops}{how} Q");
    }

    fn text(&mut self, text: &Text, series: &str) {
        let mut codes = String::new();
        for glyph in text::glyphs(&escape_control(&text.text)) {
            let code = self.glyphs.remap(glyph.id);
            if usize::from(code) == self.shown.len() {
                self.shown.push((glyph.advance, Some(glyph.character)));
            }
            let _ = write!(codes, "{code:04x}");
        }
        let turn = match text.upwards {
            true => "0 1 -1 0",
            false => "1 0 0 1",
        };
        let _ = writeln!(
            self.content,
            "BT {} rg /F {} Tf {turn} {} Tm <{codes}> Tj ET",
            channels(text.paint.colour(series)),
            number(text.size),
            self.place(text.start()),
        );
    }

    /// States of graphics, one for each opacity (8.4.5).
    fn opacities(&self) -> String {
        let state = |percent: &u32| {
            let share = f64::from(*percent) / 100.0;
            format!("/O{percent}<</ca {share}/CA {share}>>")
        };
        self.percents.iter().map(state).collect()
    }

    /// A name for this subset of the font: six letters precede it, so that readers do not confuse two subsets (9.6.4).
    fn font_name(&self) -> String {
        let glyphs = self.glyphs.remapped_gids().flat_map(u16::to_be_bytes);
        let letter = |hex: char| char::from(b'A' + hex.to_digit(16).unwrap_or(0) as u8);
        let tag: String = digest(glyphs).chars().take(6).map(letter).collect();
        format!("{tag}+NotoSans-Regular")
    }

    /// The character of each glyph, so that text can be searched and copied (9.10.3).
    fn to_unicode(&self) -> String {
        let mut map = String::from(
            "/CIDInit/ProcSet findresource begin\n12 dict begin\nbegincmap\n\
             /CIDSystemInfo<</Registry(Adobe)/Ordering(UCS)/Supplement 0>>def\n\
             /CMapName/Adobe-Identity-UCS def\n/CMapType 2 def\n\
             1 begincodespacerange\n<0000> <ffff>\nendcodespacerange\n",
        );
        let known = |(code, (_, character)): (usize, &(f64, Option<char>))| {
            character.map(|character| (code, character))
        };
        let pairs: Vec<(usize, char)> = self.shown.iter().enumerate().filter_map(known).collect();
        // A list has at most a hundred entries.
        for list in pairs.chunks(100) {
            let _ = writeln!(map, "{} beginbfchar", list.len());
            for (code, character) in list {
                let units = utf16(&character.to_string());
                let _ = writeln!(map, "<{code:04x}> <{units}>");
            }
            map.push_str("endbfchar\n");
        }
        map.push_str("endcmap\nCMapName currentdict/CMap defineresource pop\nend\nend\n");
        map
    }
}

/// Numbered objects, and where each begins.
struct File {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl File {
    fn begin(&mut self) {
        self.starts.push(self.bytes.len());
        let number = self.starts.len();
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
    }

    fn object(&mut self, body: &str) {
        self.begin();
        self.bytes.extend(body.bytes());
        self.bytes.extend(b"\nendobj\n");
    }

    /// A stream with these further entries in its dictionary.
    fn stream(&mut self, entries: &str, data: &[u8]) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(data).and_then(|()| encoder.finish());
        let packed = packed.expect("memory takes all");
        self.begin();
        let length = packed.len();
        let head = format!("<</Length {length}/Filter/FlateDecode{entries}>>\nstream\n");
        self.bytes.extend(head.bytes());
        self.bytes.extend(packed);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    /// The file with its table of objects (7.5.4).
    fn finish(mut self) -> Vec<u8> {
        let table = self.bytes.len();
        let count = self.starts.len() + 1;
        let mut end = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for start in &self.starts {
            let _ = writeln!(end, "{start:010} 00000 n ");
        }
        let _ = write!(
            end,
            "trailer\n<</Size {count}/Root {CATALOG} 0 R/Info {INFORMATION} 0 R>>\nstartxref\n{table}\n%%EOF\n"
        );
        self.bytes.extend(end.bytes());
        self.bytes
    }
}

/// UTF-16 in hexadecimal (7.9.2.2).
fn utf16(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("{unit:04x}"))
        .collect()
}

/// Red, green and blue, 0 to 1, of a colour written `#rrggbb`.
fn channels(colour: &str) -> String {
    let shares = scene::channels(colour).map(|channel| number(f64::from(channel) / 255.0));
    shares.join(" ")
}

/// A number with at most four decimals: PDF has no exponents.
fn number(value: f64) -> String {
    decimal(value, 4)
}
