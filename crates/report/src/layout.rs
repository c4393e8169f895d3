//! Columns of text, fitted to a terminal or as Markdown.

use std::ops::Range;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use iolab_workload::escape_control::escape_control;
use unicode_width::UnicodeWidthStr;

use crate::latex;
use crate::markdown::escaped;
use crate::notation::{self, clean};

/// Narrowest supported terminal, columns.
pub const WIDTH_MIN: u16 = 40;

/// Most lines of a first screen at 80 columns or more.
pub const SCREEN_LINES: usize = 24;

/// Most rows of the table of a first screen.
pub(crate) const SCREEN_ROWS: usize = 12;

/// The commands of iolab, which no line breaks.
pub const COMMANDS: [&str; 26] = [
    "compare", "completions", "distil", "doctor", "export", "fit", "gate", "help", "history",
    "import", "list", "model", "plot", "record", "replay", "report", "resume", "run", "schema",
    "serve", "show", "study", "table", "time", "why", "witness",
];

/// Gap between two columns of a table, characters.
const GAP: usize = 2;

/// A column of a table: heading, text per row, and priority.
#[derive(Debug, Clone)]
pub struct Column {
    pub(crate) heading: String,
    pub(crate) values: Vec<String>,
    /// Columns with the highest number are dropped first; 0 is never dropped.
    pub(crate) dispensable: u8,
    pub(crate) right: bool,
    /// Values may be broken into lines of this width where space is short; `None`: never.
    breaks_at: Option<usize>,
}

impl Column {
    /// A right-aligned column. Without enough space, columns with the highest `dispensable` are dropped first; 0 never.
    pub fn new(
        heading: impl Into<String>,
        dispensable: u8,
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            heading: heading.into(),
            values: values.into_iter().collect(),
            dispensable,
            right: true,
            breaks_at: None,
        }
    }

    /// The column, with values that may be broken into lines of this width where space is short.
    #[must_use]
    pub fn breaking(mut self, width: usize) -> Self {
        self.breaks_at = Some(width);
        self
    }

    /// The column, left-aligned.
    #[must_use]
    pub fn left(mut self) -> Self {
        self.right = false;
        self
    }

    /// Whether it has this heading.
    pub(crate) fn is(&self, heading: &str) -> bool {
        self.heading == heading
    }

    /// The value that all rows share; `None` for different ones.
    pub(crate) fn common_value(&self) -> Option<&str> {
        shared(self.values.iter().map(String::as_str))
    }

    /// Number of values.
    pub(crate) fn rows(&self) -> usize {
        self.values.len()
    }

    /// The smallest width for its values.
    pub(crate) fn width(&self) -> usize {
        let lines = self.values.iter().flat_map(|value| value.lines());
        let longest = lines.map(|line| line.width()).max();
        let longest = longest.unwrap_or(0).max(self.heading.width());
        self.breaks_at.map_or(longest, |width| longest.min(width))
    }

    /// The width of its longest unbreakable part: words of the heading, and values that may not be broken.
    fn longest_word(&self) -> usize {
        let values = self.values.iter().filter(|_| self.breaks_at.is_none());
        let texts = values.chain([&self.heading]);
        let words = texts.flat_map(|text| text.split([' ', '\n']));
        words.map(UnicodeWidthStr::width).max().unwrap_or(0)
    }
}

/// The value that all of these are; `None` for different ones, and for none.
pub(crate) fn shared<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// The text of a row in a column.
type Cell<'a, T> = &'a dyn Fn(&T) -> String;

/// Maker of columns of these rows, from its heading, its priority and the text of a row.
pub(crate) fn columns_over<T>(rows: &[T]) -> impl Fn(&str, u8, Cell<'_, T>) -> Column {
    move |heading, dispensable, value| Column::new(heading, dispensable, rows.iter().map(value))
}

/// The levels of each row, a column for each factor.
pub fn level_columns<'a>(
    factors: &[String],
    rows: impl Iterator<Item = &'a [String]> + Clone,
) -> Vec<Column> {
    let column = |(place, factor): (usize, &String)| {
        let level = |levels: &'a [String]| {
            let level = levels.get(place);
            level.map_or_else(none, |level| clean(level))
        };
        Column::new(escape_control(factor), 0, rows.clone().map(level))
    };
    factors.iter().enumerate().map(column).collect()
}

/// The columns for a terminal of `width` columns. Those that do not fit are dropped in the order of priority, and named in a line
/// below.
pub fn text(columns: Vec<Column>, width: u16) -> String {
    let width = width.max(WIDTH_MIN);
    let mut columns = in_groups(columns);
    let left_out = leave_out(&mut columns, |columns| fits(columns, width));
    let is_tight = !fits(&columns, width);
    let mut table = filled(&columns);
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    let last = columns.len().saturating_sub(1);
    for (i, (column, shown)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        let gap = if i < last { GAP } else { 0 };
        shown.set_padding((0, gap as u16));
        if is_tight {
            let least = Width::Fixed((column.longest_word() + gap) as u16);
            shown.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    if !left_out.is_empty() {
        text.push_str(&wrapped(
            &format!("(hidden: {})", left_out.join(", ")),
            width,
        ));
    }
    text
}

/// The first rows of a table, in at most this many lines, with the number of rows that have no room.
pub(crate) fn first_rows(mut columns: Vec<Column>, lines: usize, width: u16) -> String {
    let rows = columns.first().map_or(0, Column::rows);
    let mut shown = rows.min(SCREEN_ROWS);
    loop {
        for column in &mut columns {
            column.values.truncate(shown);
        }
        let more = match rows - shown {
            0 => String::new(),
            n => format!("({n} more)\n"),
        };
        let table = text(columns.clone(), width) + &more;
        let taken = table.lines().count();
        if taken <= lines || shown <= 1 {
            return table;
        }
        shown -= 1;
    }
}

/// Whether a terminal of `width` columns shows all of them.
fn fits(columns: &[Column], width: u16) -> bool {
    columns.iter().map(|c| c.width() + GAP).sum::<usize>() <= usize::from(width) + GAP
}

/// Width that a further column can have on a terminal of `width` columns.
pub(crate) fn room_beside(columns: &[Column], width: usize) -> usize {
    let columns = in_groups(columns.to_vec()).into_iter();
    let taken = columns.map(|column| column.width() + GAP).sum();
    width.saturating_sub(taken)
}

/// The columns, with long numbers in groups.
fn in_groups(mut columns: Vec<Column>) -> Vec<Column> {
    let numbers = columns.iter_mut().filter(|column| column.right);
    for value in numbers.flat_map(|column| &mut column.values) {
        *value = notation::in_groups(value);
    }
    columns
}

/// A text with every line broken into lines of at most `width` columns.
pub fn wrapped(text: &str, width: u16) -> String {
    let width = usize::from(width.max(WIDTH_MIN));
    let lines = text.lines().flat_map(|line| wrap(line, width));
    lines.map(|line| line + "\n").collect()
}

/// Every column, in Markdown.
pub(crate) fn markdown(mut columns: Vec<Column>) -> String {
    for column in &mut columns {
        let values = column.values.iter_mut();
        for text in values.chain([&mut column.heading]) {
            *text = escaped(text);
        }
    }
    let mut table = filled(&columns);
    table.load_style(ASCII_MARKDOWN);
    let text = table.to_string();
    let lines = text.lines().enumerate().map(|(place, line)| match place {
        // The second line aligns the columns.
        1 => {
            let mut parts = line.split('|').map(str::to_owned).collect::<Vec<_>>();
            let right = parts.iter_mut().skip(1).zip(&columns);
            for (part, _) in right.filter(|(_, column)| column.right) {
                part.replace_range(part.len() - 1.., ":");
            }
            parts.join("|")
        }
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Every column, as a LaTeX `tabular`.
pub(crate) fn latex(columns: &[Column]) -> String {
    let sides = columns.iter().map(|one| if one.right { 'r' } else { 'l' });
    let rows = columns.first().map_or(0, Column::rows);
    tabular(columns, &sides.collect::<String>(), 0..rows)
}

/// A LaTeX `tabular` of these rows, with the alignment of each column.
pub(crate) fn tabular(columns: &[Column], sides: &str, rows: Range<usize>) -> String {
    let line = |text: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|one| latex::escaped(&text(one)))
            .collect();
        format!("{} \\\\\n", cells.join(" & "))
    };
    let heading = line(&|column| column.heading.clone());
    let rows: String = rows
        .map(|row| line(&|column| column.values[row].clone()))
        .collect();
    format!(
        "\\begin{{tabular}}{{{sides}}}\n\\hline\n{heading}\\hline\n{rows}\\hline\n\\end{{tabular}}\n"
    )
}

/// Removes columns in the order of priority until the rest fits; returns their headings.
pub(crate) fn leave_out(
    columns: &mut Vec<Column>,
    fits: impl Fn(&[Column]) -> bool,
) -> Vec<String> {
    let mut left_out = Vec::new();
    while !fits(columns) {
        let all = columns.iter().enumerate();
        let dear = all.filter(|(_, column)| column.dispensable > 0);
        let Some((place, _)) = dear.max_by_key(|(_, column)| column.dispensable) else {
            break;
        };
        left_out.push(columns.remove(place).heading);
    }
    left_out
}

fn filled(columns: &[Column]) -> Table {
    let mut table = Table::new();
    table.set_header(columns.iter().map(|c| c.heading.as_str()));
    let rows = columns.first().map_or(0, |c| c.values.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|c| c.values[row].as_str()));
    }
    for (column, shown) in columns.iter().zip(table.column_iter_mut()) {
        if column.right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Breaks a text, in the notation of a terminal, between words into lines of at most `width` characters; a longer word has its own
/// line, a number stays with its unit, and a command is a word.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = notation::bound(text);
    for word in words_and_commands(&text) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| notation::broken(line)).collect()
}

/// The words of a text, with each command of iolab as one word, and what follows `remedy:`: broken into lines they could not be pasted.
fn words_and_commands(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut rest = text;
    loop {
        let end = match words.last() {
            Some(&"remedy:") => rest.len(),
            _ => command_end(rest).unwrap_or_else(|| rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(&rest[..end]);
        match rest[end..].strip_prefix(' ') {
            Some(more) => rest = more,
            None => return words,
        }
    }
}

/// Position at which the command at the beginning of a text ends: after its closing quotation mark, or else at
/// the first punctuation that nothing quotes.
fn command_end(text: &str) -> Option<usize> {
    let command = text.trim_start_matches(['(', '\'', '`']);
    let mark = &text[..text.len() - command.len()];
    let is_launched = ["mpirun -n ", "srun -n ", "sudo "]
        .iter()
        .any(|launcher| command.starts_with(launcher));
    let mut words = command.splitn(6, ' ');
    let is_own = words.find(|word| !is_launched || *word == "iolab") == Some("iolab");
    let name = words
        .next()?
        .trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    if !is_own || !(COMMANDS.contains(&name) || name.starts_with("--")) {
        return None;
    }
    let quote = mark.chars().last().filter(|mark| *mark != '(');
    let (mut is_quoted, mut end) = (false, mark.len());
    for word in command.split(' ') {
        end += word.len();
        is_quoted ^= word.matches('\'').count() % 2 == 1;
        let is_marked = word.ends_with([',', ';', ':', ')', '.']) && !word.ends_with("...");
        let is_last = match quote {
            Some(quote) => word.contains(quote),
            None => is_marked && word != "." && !is_quoted,
        };
        if is_last {
            return Some(end);
        }
        end += 1;
    }
    Some(text.len())
}

/// A text in lines that fit, indented by the width of the mark after the first.
pub fn paragraph(text: &str, mark: &str, width: u16) -> String {
    let width = usize::from(width);
    let indent = " ".repeat(mark.chars().count().max(2));
    let room = width - indent.len();
    let lines = wrap(text, room);
    let lines = lines.iter().enumerate().map(|(i, line)| match i {
        0 => format!("{mark}{line}\n"),
        _ => format!("{indent}{line}\n"),
    });
    lines.collect()
}

/// A paragraph in at most this many lines: whole, or the first entries, or the first words, with dots for the rest.
pub(crate) fn cut(text: &str, mark: &str, lines: usize, width: u16) -> String {
    let fits = |text: &String| text.lines().count() <= lines;
    let whole = paragraph(text, mark, width);
    if fits(&whole) {
        return whole;
    }
    // Texts of files have any length.
    let room = text.char_indices().nth(lines * usize::from(width));
    let room = room.map_or(text.len(), |(end, _)| end);
    let words = text[..room].match_indices(' ').map(|(end, _)| end);
    let ends = [entries(&text[..room]), words.collect()].into_iter();
    let shown = ends.flat_map(|ends| ends.into_iter().rev());
    let mut shown = shown.map(|end| paragraph(&format!("{} ...", &text[..end]), mark, width));
    let first_lines = || whole.split_inclusive('\n').take(lines).collect();
    shown.find(fits).unwrap_or_else(first_lines)
}

/// The ends of all entries of a text but the last: sentences, items of lists, and a clause, outside brackets and commands.
fn entries(text: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    let is_end = |(at, c): &(usize, char)| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let (before, rest) = text.split_at(*at);
        let marks = [". ", "; ", ", but "];
        depth == 0 && !before.ends_with(' ') && marks.iter().any(|mark| rest.starts_with(mark))
    };
    let ends = text.char_indices().filter(is_end);
    ends.map(|(at, c)| at + usize::from(c == '.')).collect()
}

/// The text for a missing value.
pub fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_not_broken_within_words() {
        let headings = ["experiment", "throughput", "concurrency", "95 % interval"];
        let columns = || {
            let column = |heading: &&str| Column::new(*heading, 0, ["4KiB of 128MiB".to_owned()]);
            headings.iter().map(column).collect::<Vec<_>>()
        };
        for width in [40, 50, 80, 120, 220] {
            let shown = text(columns(), width);
            for word in [
                "experiment", "throughput", "concurrency", "interval", "128MiB",
            ] {
                assert!(shown.contains(word), "{word} at {width}:\n{shown}");
            }
        }
    }

    #[test]
    fn cut_paragraph_ends_with_whole_entry() {
        let text = "Reads are slower (4 KiB; 2 MB/s. 1), but faster with 1 MiB. Also: a; and 7 more. Alike: b; c.";
        let cuts = |lines| cut(text, "1. ", lines, 40);
        insta::assert_snapshot!([1, 2, 3].map(cuts).join("\n"), @r"
        1. Reads are slower (4 KiB; 2 MB/s. ...

        1. Reads are slower (4 KiB; 2 MB/s. 1),
           but faster with 1 MiB. Also: a ...

        1. Reads are slower (4 KiB; 2 MB/s. 1),
           but faster with 1 MiB. Also: a; and 7
           more. Alike: b; c.
        ");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("averylongword x", 4), ["averylongword", "x"]);
        assert_eq!(wrap("a 4KiB at 12 us", 8), ["a 4 KiB", "at 12 µs"]);
    }

    #[test]
    fn no_command_is_broken_into_lines() {
        for command in [
            "iolab resume iolab-results,",
            "mpirun -n 4 iolab resume 'old; run.iolab' --destroy-data,",
            "sudo iolab run read-random . --set bs=4k,64k)",
            "'iolab run x --set command=\"a; b\"'",
            "(iolab doctor)",
            "`iolab study --dry-run`",
        ] {
            let text = ["finish it with", command, "or not"].join(" ");
            let lines = wrap(&text, 10);
            assert!(lines.iter().any(|line| line == command), "{lines:?}");
            assert_eq!(lines.last().map(String::as_str), Some("or not"));
        }
        let text = "slow; remedy: top -b -n 1 | head -20";
        assert_eq!(
            wrap(text, 8),
            ["slow;", "remedy:", "top -b -n 1 | head -20"]
        );
        assert_eq!(
            wrap("with: iolab table FILE", 5),
            ["with:", "iolab table FILE"]
        );
        // The name of the program alone is not a command.
        assert_eq!(
            wrap("iolab makes it smaller", 11),
            ["iolab makes", "it smaller"]
        );
    }
}
