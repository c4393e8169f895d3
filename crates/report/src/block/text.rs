//! A document as text.

use super::{Block, Drawing};
use crate::layout::{self, paragraph, wrapped};
use iolab_workload::escape_control::escape_control;

/// The document in lines of at most this many characters, but for lines to copy.
pub(crate) fn screen(blocks: &[Block], width: u16) -> String {
    let part = |part: &Block| match part {
        Block::Heading(heading) => {
            let text = escape_control(&heading.text);
            let line = if heading.level == 1 { '=' } else { '-' };
            let rule: String = text.chars().map(|_| line).collect();
            format!("{text}\n{rule}\n\n")
        }
        Block::Paragraph(_, text) => wrapped(&escape_control(text), width) + "\n",
        Block::List(list) => {
            let items = (1..).zip(&list.items).map(|(number, item)| {
                let mark = match list.is_ordered {
                    true => format!("{number}. "),
                    false => "- ".to_owned(),
                };
                paragraph(&escape_control(&item.in_full()), &mark, width)
            });
            items.collect::<String>() + "\n"
        }
        Block::Facts(facts) => {
            let facts = facts.iter();
            let lines =
                facts.map(|(name, value)| paragraph(&format!("{name}: {value}"), "", width));
            lines.collect::<String>() + "\n"
        }
        Block::Table(table) => {
            wrapped(&table.caption(), width) + &layout::text(table.columns.clone(), width) + "\n"
        }
        Block::Figure(picture) => match &picture.drawing {
            Drawing::Figure(figure, _) => wrapped(figure.description(), width) + "\n",
            Drawing::Card(_) => String::new(),
        },
        Block::Lines(lines) => {
            let lines = lines.text.lines();
            let lines = lines.map(|line| format!("  {}\n", escape_control(line)));
            lines.collect::<String>() + "\n"
        }
        Block::Contents(_) => String::new(),
    };
    blocks.iter().map(part).collect()
}
