//! The overview as a picture of 1200 by 630 pixels, the size of link previews.

use iolab_analysis::trial_values::distinct;
use iolab_workload::Result;

use super::layout::Canvas;
use super::scene::{Frame, OUTLINE, Paint, Scene, Shape, Text};
use super::text::{fitted, fitted_label, fitted_name, width, wrapped};

/// Width and height, pixels.
const SIZE: (f64, f64) = (1200.0, 630.0);
/// Resolution at which a point of the scene is a pixel.
const DPI: f64 = 72.0;
/// Margin at all edges, pixels.
const MARGIN: f64 = 48.0;
/// First and last row, pixels from the top.
const ROWS: (f64, f64) = (168.0, 540.0);
/// Width of the names of the rows, pixels.
const NAMES: f64 = 216.0;
/// Space between the name of a row and its first value, pixels.
const BEFORE_VALUES: f64 = 20.0;
/// Most rows that can be read.
const ROWS_MAX: usize = 6;
/// Height of a row that has its texts in full size, pixels.
const ROW: f64 = 93.0;
/// Largest scale of the texts of a row, where there are few.
const SCALE_MAX: f64 = 1.5;
/// Space between two columns, pixels.
const GUTTER: f64 = 36.0;
/// Sizes of a value, its unit and its note in a row of full size, pixels.
const SIZES: [f64; 3] = [38.0, 19.0, 17.0];
/// Space between a value and its unit, pixels.
const BEFORE_UNIT: f64 = 8.0;
/// Width of a line, pixels.
const LINE: f64 = 2.0;
/// Height of a bar, pixels.
const BAR: f64 = 10.0;
/// Smallest size of a text that does not fit, as a share of its own size.
const SHRUNK_MIN: f64 = 0.6;
/// Size of the sentence on trust, pixels.
const TRUST: f64 = 16.0;
/// First line of the sentence on trust, pixels from the top.
const TRUST_AT: f64 = 564.0;
/// Distance of the lines that hatch a bar, pixels.
const HATCH: f64 = 7.0;

/// The texts above and below the numbers.
#[derive(Debug)]
pub struct PreviewText {
    /// The largest words: the drive that was measured.
    pub title: String,
    /// Target and settings, below the title.
    pub subject: String,
    /// Reliability of the numbers, printed below them.
    pub trust: String,
    /// The program that made the picture, and when.
    pub source: String,
}

/// A number of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewNumber {
    /// Name of its row; numbers of the same name and note stand side by side.
    pub row: String,
    /// Text below the name of the row.
    pub row_note: String,
    /// Name of its column.
    pub column: String,
    /// The value without its unit.
    pub value: String,
    /// Unit of the number and of its bar; bars of one unit are comparable.
    pub unit: &'static str,
    /// Text below the value.
    pub note: String,
    /// Length of its bar, in `unit`.
    pub amount: f64,
    /// Ends of its 95 % interval, in `unit`.
    pub interval: Option<(f64, f64)>,
    /// Whether its evidence weakens it: its bar is hatched.
    pub is_doubtful: bool,
    /// Index of its target among the targets of a page, which decides its colour in all figures.
    pub target: usize,
}

/// The picture as PNG.
///
/// # Errors
/// Of kind failed when it cannot be drawn.
pub fn png(numbers: &[PreviewNumber], words: &PreviewText) -> Result<Vec<u8>> {
    super::png::png(&scene(numbers, words), DPI)
}

fn scene(numbers: &[PreviewNumber], words: &PreviewText) -> Scene {
    let mut canvas = Canvas::new(SIZE.0, 0.0);
    let room = SIZE.0 - 2.0 * MARGIN;
    let rows = rows(numbers);
    let shown = || rows.iter().flatten().copied();
    let mut source = format!("{} Medians", words.source);
    source.push_str(match shown().any(|number| number.interval.is_some()) {
        true => "; ± and whiskers: 95 % interval for a repeat at once.",
        false => ".",
    });
    if shown().any(|number| number.is_doubtful) {
        source.push_str(" Hatched: disturbed, suspended, or not served as asked.");
    }
    if distinct(shown().map(|number| number.target)).len() > 1 {
        source.push_str(" One colour per target.");
    }
    for (text, y, size, paint) in [
        (&words.title, 72.0, 36.0, Paint::Ink),
        (&words.subject, 108.0, 19.0, Paint::Muted),
        (&source, 610.0, 16.0, Paint::Muted),
    ] {
        write(&mut canvas, (MARGIN, y), text, (size, room), paint);
    }
    let mut trust = wrapped(&words.trust, TRUST, room);
    if trust.len() > 2 {
        trust = vec![trust.remove(0), trust.join(" ")];
    }
    for (number, text) in trust.iter().enumerate() {
        let y = TRUST_AT + TRUST * 1.35 * number as f64;
        let text = fitted(text, TRUST, room);
        canvas.write(Text::at((MARGIN, y), TRUST, text));
    }
    let columns = distinct(shown().map(|number| number.column.as_str()));
    let column = (room - NAMES) / columns.len().max(1) as f64;
    let left = |place: usize| MARGIN + NAMES + column * place as f64;
    for (place, name) in columns.iter().enumerate() {
        let at = (left(place), ROWS.0 - 14.0);
        canvas.write(Text::at(at, 19.0, *name).painted(Paint::Muted));
    }
    let height = (ROWS.1 - ROWS.0) / rows.len().max(1) as f64;
    let [value, unit, _] = SIZES;
    // Width of a value with its unit in a row of full size.
    let widths = shown().map(|number| width(&number.value, value) + width(number.unit, unit));
    let widest = (widths.fold(0.0, f64::max) + BEFORE_UNIT).max(1.0);
    let scale = (height / ROW).min(((column - GUTTER) / widest).clamp(1.0, SCALE_MAX));
    for (place, row) in rows.iter().enumerate() {
        let top = ROWS.0 + height * place as f64;
        let ends = [(MARGIN, top), (MARGIN + room, top)];
        canvas.line("", &ends, (LINE, ""), Paint::Grid);
        let middle = top + height / 2.0;
        write_name(&mut canvas, row[0], middle, scale);
        for number in row {
            let at = columns.iter().position(|name| *name == number.column);
            let longest = shown().filter(|other| other.unit == number.unit);
            let longest = longest.map(reach).fold(0.0, f64::max);
            let at = (left(at.unwrap_or(0)), middle);
            draw(&mut canvas, number, at, (column - GUTTER, longest), scale);
        }
    }
    Scene::new(SIZE, canvas.items)
}

/// Writes a text in a size in which it fits, no smaller than [`SHRUNK_MIN`] of the given one; what does not fit then is cut.
fn write(canvas: &mut Canvas, at: (f64, f64), text: &str, (size, room): (f64, f64), paint: Paint) {
    let (text, size) = fitted_label(text, size, SHRUNK_MIN, room);
    canvas.write(Text::at(at, size, text).painted(paint));
}

/// Writes the name of a row, with the text below it.
fn write_name(canvas: &mut Canvas, first: &PreviewNumber, middle: f64, scale: f64) {
    let room = NAMES - BEFORE_VALUES;
    let at = (MARGIN, middle - 2.0 * scale);
    write(canvas, at, &first.row, (28.0 * scale, room), Paint::Ink);
    let (_, size) = fitted_label(&first.row_note, 18.0 * scale, SHRUNK_MIN, room);
    let note = fitted_name(&first.row_note, size, room);
    let at = (MARGIN, middle + 24.0 * scale);
    canvas.write(Text::at(at, size, note).painted(Paint::Muted));
}

/// The end of a bar or of its interval, whichever is greater, in the unit of the bar.
fn reach(number: &PreviewNumber) -> f64 {
    let end = number.interval.map_or(0.0, |(_, high)| high);
    end.max(number.amount)
}

/// Draws the value with its unit, what stands below it, and its bar with its interval; the `longest` one fills the room.
fn draw(
    canvas: &mut Canvas,
    number: &PreviewNumber,
    (x, middle): (f64, f64),
    (room, longest): (f64, f64),
    scale: f64,
) {
    let end = |value: f64| match longest > 0.0 {
        true => x + room * (value / longest).clamp(0.0, 1.0),
        false => x,
    };
    let [value, unit, note] = SIZES.map(|size| size * scale);
    let unit_x = x + width(&number.value, value) + BEFORE_UNIT * scale;
    canvas.write(Text::at((x, middle), value, &*number.value));
    canvas.write(Text::at((unit_x, middle), unit, number.unit).painted(Paint::Muted));
    let at = (x, middle + 24.0 * scale);
    write(canvas, at, &number.note, (note, room), Paint::Muted);
    let top = middle + 32.0 * scale;
    let right = end(number.amount).max(x + 2.0);
    let bar = Frame::new((x, top), (right, top + BAR * scale));
    canvas.group("series", Some(number.target), Vec::new(), "");
    if number.is_doubtful {
        let paper = Shape::filled("", bar.outline(), Paint::Paper);
        canvas.shape(paper.outlined(OUTLINE, Paint::Series));
        canvas.shape(Shape::hatch(bar, [true, false], HATCH, 1.5, Paint::Series));
    } else {
        canvas.shape(Shape::filled("", bar.outline(), Paint::Series));
    }
    canvas.close();
    if let Some((low, high)) = number.interval {
        // An interval across the middle of a bar, with its ends.
        let middle = f64::midpoint(bar.top, bar.bottom);
        let upright = |x: f64| [(x, bar.top - 1.0), (x, bar.bottom + 1.0)];
        let (low, high) = (end(low), end(high));
        for ends in [[(low, middle), (high, middle)], upright(low), upright(high)] {
            canvas.line("", &ends, (LINE, ""), Paint::Ink);
        }
    }
}

/// The rows that are shown, each with its numbers.
fn rows(numbers: &[PreviewNumber]) -> Vec<Vec<&PreviewNumber>> {
    let key = |number: &PreviewNumber| (number.row.clone(), number.row_note.clone());
    let keys = distinct(numbers.iter().map(key));
    let row = |own| numbers.iter().filter(|number| key(number) == own).collect();
    keys.into_iter().take(ROWS_MAX).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scene::Item;
    use super::super::tests::texts;
    use super::*;

    fn number(row: &str, column: &str, is_doubtful: bool) -> PreviewNumber {
        PreviewNumber {
            row: row.to_owned(),
            row_note: "Q1 T1".to_owned(),
            column: column.to_owned(),
            value: "502".to_owned(),
            unit: "MB/s",
            note: "±2.0 %".to_owned(),
            amount: 502.0,
            interval: Some((492.0, 512.0)),
            is_doubtful,
            target: 0,
        }
    }

    fn of(numbers: &[PreviewNumber]) -> Scene {
        let words = PreviewText {
            title: "A disk".to_owned(),
            subject: "here".to_owned(),
            trust: "Trust: good".to_owned(),
            source: "iolab".to_owned(),
        };
        scene(numbers, &words)
    }

    #[test]
    fn everything_stays_on_the_picture() {
        let rows: Vec<String> = (0..9).map(|row| format!("RND {row}KiB")).collect();
        for count in [1, 4, 6, 9] {
            let numbers = rows.iter().take(count);
            let numbers = numbers.flat_map(|row| ["read", "write"].map(|c| number(row, c, true)));
            let scene = of(&numbers.collect::<Vec<_>>());
            let frames: Vec<Frame> = texts(&scene).map(Text::frame).collect();
            for frame in &frames {
                assert!(frame.left >= 0.0 && frame.right <= SIZE.0, "{frame:?}");
                assert!(frame.top >= 0.0 && frame.bottom <= SIZE.1, "{frame:?}");
            }
            for (i, frame) in frames.iter().enumerate() {
                let apart = |other: &Frame| !frame.overlaps(other);
                assert!(frames[..i].iter().all(apart), "{count} rows: {frame:?}");
            }
        }
    }

    #[test]
    fn few_rows_are_larger_if_values_have_room() {
        let size = |value: &str, columns: &[&str]| {
            let numbers = columns.iter().map(|column| PreviewNumber {
                value: value.to_owned(),
                ..number("RND 4 KiB", column, false)
            });
            let scene = of(&numbers.collect::<Vec<_>>());
            let shown = texts(&scene).find(|text| text.text == value);
            shown.expect("the value").size
        };
        assert_eq!(size("502", &["read", "write"]), SIZES[0] * SCALE_MAX);
        let long = size("1800, then 100", &["read", "write", "trim"]);
        assert_eq!(long, SIZES[0]);
    }

    #[test]
    fn row_names_and_trust_stay_distinct_and_readable() {
        let disks = ["A", "B"].map(|end| format!("/mnt/by-id/ata-WDC_WD40EFRX_WCC7K0{end}"));
        let numbers = disks.clone().map(|row_note| PreviewNumber {
            row_note: format!("{row_note} Q32 T16"),
            ..number("SEQ 1 MiB", "read", true)
        });
        let trust =
            "Trust: poor: other programs used the disk or the CPUs during most cells. ".repeat(2);
        let words = PreviewText {
            title: "Two disks".to_owned(),
            subject: "here".to_owned(),
            trust: trust.trim_end().to_owned(),
            source: "iolab".to_owned(),
        };
        let scene = scene(&numbers, &words);
        let shown: Vec<&Text> = texts(&scene).collect();
        let notes = shown.iter().filter(|text| text.text.starts_with("/mnt"));
        let notes: Vec<&str> = notes.map(|text| text.text.as_str()).collect();
        assert!(
            notes[0].ends_with("A Q32 T16") && notes[1].ends_with("B Q32 T16"),
            "{notes:?}"
        );
        let all: Vec<&str> = shown.iter().map(|text| text.text.as_str()).collect();
        assert!(all.join(" ").contains(&words.trust), "{all:?}");
        for (i, text) in shown.iter().enumerate() {
            let frame = text.frame();
            assert!(frame.right <= SIZE.0 && frame.bottom <= SIZE.1, "{text:?}");
            let apart = |other: &&Text| !frame.overlaps(&other.frame());
            assert!(shown[..i].iter().all(apart), "{text:?}");
        }
    }

    #[test]
    fn doubtful_number_is_hatched_with_a_legend() {
        for is_doubtful in [false, true] {
            let scene = of(&[number("SEQ 1MiB", "read", is_doubtful)]);
            let is_hatch =
                |item: &Item| matches!(item, Item::Shape(shape) if shape.class == "hatch");
            assert_eq!(scene.items.iter().any(is_hatch), is_doubtful);
            let legend = texts(&scene).any(|text| text.text.contains("Hatched"));
            assert_eq!(legend, is_doubtful);
        }
    }
}
