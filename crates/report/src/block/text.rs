//! A document as text and as Markdown.

use super::{Block, Item, Lines, List, Look, Picture};
use crate::layout::{self, cut, paragraph, wrapped};
use crate::markdown::{block, escaped, sentence};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::counted;

/// Lines of a list on a first screen that are kept free of rows of a table.
const LIST_LINES: usize = 5;

/// Longest name of a fact whose value is in a column of its own.
const NAME_MAX: usize = 20;

/// The document in lines of at most this many characters, but for lines to copy.
pub fn in_text(blocks: &[Block], width: u16) -> String {
    blocks.iter().map(|part| written(part, width)).collect()
}

/// The document in at most this many lines, for which tables lose rows and lists lose items. `more` is the command
/// that shows these.
pub fn first_screen(blocks: &[Block], lines: usize, more: &str, width: u16) -> String {
    let count = |text: &str| text.lines().count();
    let (mut left, mut listed) = (lines, 0);
    for part in blocks {
        match part {
            Block::Table(_) => {}
            Block::List(_) => listed += count(&written(part, width)),
            _ => left = left.saturating_sub(count(&written(part, width))),
        }
    }
    let mut screen = String::new();
    for part in blocks {
        let text = match part {
            Block::Table(table) => {
                let caption = table.caption_lines(width);
                let kept = count(&caption) + 1 + listed.min(LIST_LINES);
                let rows = left.saturating_sub(kept);
                caption + &layout::first_rows(table.columns.clone(), rows, width) + "\n"
            }
            Block::List(list) => first_items(list, left, more, width),
            _ => {
                screen += &written(part, width);
                continue;
            }
        };
        left = left.saturating_sub(count(&text));
        screen += &text;
    }
    screen.trim_end().to_owned() + "\n"
}

/// The first items of a list in at most this many lines, of which the first one is cut if it does not fit.
fn first_items(list: &List, lines: usize, more: &str, width: u16) -> String {
    let all = list.items.len();
    let mut text = String::new();
    for (place, item) in list.items.iter().enumerate() {
        let shown = written_item(list, place, item, usize::MAX, width);
        let is_last = place + 1 == all;
        let left = lines.saturating_sub(text.lines().count() + usize::from(!is_last));
        if shown.lines().count() <= left {
            text += &shown;
            continue;
        }
        let mut hidden = all - place;
        if place == 0 {
            text = written_item(list, place, item, left.max(1), width);
            hidden -= 1;
        }
        if hidden > 0 {
            text += &format!("({}: {more})\n", counted(hidden as u64, "more remark"));
        }
        break;
    }
    text
}

/// An item in at most this many lines.
fn written_item(list: &List, place: usize, item: &Item, lines: usize, width: u16) -> String {
    let mark = match list.is_ordered {
        true => format!("{}. ", place + 1),
        false => "- ".to_owned(),
    };
    cut(&escape_control(&item.in_full()), &mark, lines, width)
}

fn written(part: &Block, width: u16) -> String {
    match part {
        Block::Heading(heading) => {
            let text = escape_control(&heading.text);
            let line = if heading.level == 1 { '=' } else { '-' };
            let rule: String = text.chars().map(|_| line).collect();
            format!("{text}\n{rule}\n\n")
        }
        Block::Paragraph(_, text) => wrapped(&escape_control(text), width) + "\n",
        Block::List(list) if list.items.is_empty() => String::new(),
        Block::List(list) => {
            let items = list.items.iter().enumerate();
            let items =
                items.map(|(place, item)| written_item(list, place, item, usize::MAX, width));
            items.collect::<String>() + "\n"
        }
        Block::Facts(facts) => {
            let names = facts.iter().map(|(name, _)| name.chars().count());
            let names = names
                .filter(|length| *length <= NAME_MAX)
                .max()
                .unwrap_or(0);
            let line = |(name, value): &(String, String)| {
                let mark = format!("{name:names$}  ");
                paragraph(&escape_control(value), &mark, width)
            };
            facts.iter().map(line).collect::<String>() + "\n"
        }
        Block::Table(table) => table.text(width) + "\n",
        Block::Figure(picture) => wrapped(picture.figure.description(), width) + "\n",
        Block::Lines(lines) => {
            let lines = lines.text.lines();
            let lines = lines.map(|line| format!("  {}\n", escape_control(line)));
            lines.collect::<String>() + "\n"
        }
    }
}

/// The document, with its figures as SVG whose names begin with `prefix`.
pub(crate) fn document(blocks: &[Block], prefix: &str) -> (String, Vec<(String, Vec<u8>)>) {
    let mut figures = Vec::new();
    let mut text = String::new();
    for part in blocks {
        if let Block::Figure(Picture { name, figure, .. }) = part {
            let file = format!("{prefix}-{name}.svg");
            text += &format!("![{}]({file})\n\n", escaped(figure.description()));
            figures.push((file, figure.svg().into_bytes()));
        }
        text += &in_markdown(part);
    }
    (text, figures)
}

/// The parts without their figures.
pub fn parts_in_markdown(blocks: &[Block]) -> String {
    blocks.iter().map(in_markdown).collect()
}

fn in_markdown(part: &Block) -> String {
    match part {
        Block::Heading(heading) => {
            let marks = "#".repeat(heading.level.into());
            format!("{marks} {}\n\n", escaped(&heading.text))
        }
        Block::Paragraph(Look::Result, text) => format!("**{}**\n\n", sentence(text)),
        Block::Paragraph(_, text) => format!("{}\n\n", sentence(text)),
        Block::List(list) if list.items.is_empty() => String::new(),
        Block::List(list) => items(list),
        Block::Facts(facts) => {
            let fact = |(name, value): &(String, String)| {
                format!("- {}: {}\n", escaped(name), escaped(value))
            };
            facts.iter().map(fact).collect::<String>() + "\n"
        }
        Block::Table(table) => table.markdown(),
        Block::Lines(Lines { text, .. }) => block(text),
        Block::Figure(_) => String::new(),
    }
}

fn items(list: &List) -> String {
    let items = (1..).zip(&list.items).map(|(number, item)| {
        let mark = match list.is_ordered {
            true => format!("{number}."),
            false => "-".to_owned(),
        };
        format!("{mark} {}\n", sentence(&item.in_full()))
    });
    items.collect::<String>() + "\n"
}
