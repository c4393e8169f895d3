//! A document in Markdown.

use super::{Block, Drawing, Lines, List, Look, Picture};
use crate::markdown::{block, escaped, sentence};

/// The document, with its figures as SVG whose names begin with `prefix`.
pub(crate) fn document(blocks: &[Block], prefix: &str) -> (String, Vec<(String, Vec<u8>)>) {
    let mut figures = Vec::new();
    let mut text = String::new();
    for part in blocks {
        if let Block::Figure(Picture {
            name,
            drawing: Drawing::Figure(figure, _),
            ..
        }) = part
        {
            let file = format!("{prefix}-{name}.svg");
            text += &format!("![{}]({file})\n\n", escaped(figure.description()));
            figures.push((file, figure.svg().into_bytes()));
        }
        text += &written(part);
    }
    (text, figures)
}

/// The parts without their figures.
pub fn parts_in_markdown(blocks: &[Block]) -> String {
    blocks.iter().map(written).collect()
}

fn written(part: &Block) -> String {
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
        Block::Figure(_) | Block::Contents(_) => String::new(),
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
