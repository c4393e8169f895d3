//! A document as one self-contained HTML page.

use iolab_figure::{escaped, style};

use super::{Block, Heading, Item, List, Look, Picture, Table};
use crate::notation::on_page;

/// Most characters of a value on one line. Longer values, such as the paths of a stripe, would push the next
/// numbers out of sight.
const ON_ONE_LINE: usize = 32;

/// Level of what stands next to each other, below all headings.
const BESIDE: u8 = 9;

/// The page, under its title.
pub fn page(blocks: &[Block]) -> String {
    let title = blocks.iter().find_map(|block| match block {
        Block::Heading(heading) => Some(heading.text.as_str()),
        _ => None,
    });
    let links = blocks.iter().filter_map(|block| match block {
        Block::Heading(part) if part.level == 2 => Some(format!(
            "<a href=\"#{}\">{}</a>\n",
            escaped(&part.id),
            written(&part.text)
        )),
        _ => None,
    });
    let links: String = links.collect();
    let mut body = Body {
        html: "<header>\n".to_owned(),
        open: vec![(1, "</header>\n<main id=\"main\">\n")],
    };
    for block in blocks {
        body.write(block);
    }
    body.close(1);
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>iolab: {}</title>
<style>{}{}</style>
</head>
<body>
<a class=\"skip\" href=\"#main\">Skip to the results</a>
<nav aria-label=\"Parts of the page\">{links}</nav>
{}</main>
<footer><p>Written by iolab. What is folded away is not printed: unfold it first.</p></footer>
<script>{}</script>
</body>
</html>
",
        escaped(title.unwrap_or_default()),
        style(),
        include_str!("../../templates/report.css"),
        body.html,
        include_str!("../../templates/report.js"),
    )
}

/// The part of a page between its head and its end.
struct Body {
    html: String,
    /// Level and end of each open part.
    open: Vec<(u8, &'static str)>,
}

impl Body {
    fn write(&mut self, block: &Block) {
        let is_beside = matches!(block, Block::Table(_) | Block::Figure(_));
        let was_beside = self.open.last().is_some_and(|(level, _)| *level == BESIDE);
        if is_beside && !was_beside {
            self.html.push_str("<div class=\"beside\">\n");
            self.open.push((BESIDE, "</div>\n"));
        }
        if !is_beside {
            self.close(BESIDE);
        }
        let html = match block {
            Block::Heading(heading) => return self.begin(heading),
            Block::Paragraph(look, text) => paragraph(*look, text),
            Block::List(list) => written_list(list),
            Block::Facts(facts) => {
                let fact = |(name, value): &(String, String)| {
                    format!(
                        "<div><dt>{}</dt><dd>{}</dd></div>",
                        escaped(name),
                        escaped(value)
                    )
                };
                let facts: String = facts.iter().map(fact).collect();
                format!("<dl class=\"facts\">{facts}</dl>\n")
            }
            Block::Table(table) => written_table(table),
            Block::Figure(picture) => figure(picture),
            Block::Lines(lines) => {
                let (class, name) = match lines.file.as_str() {
                    "" => ("commands", String::new()),
                    file => ("toml", format!(" data-name=\"{}\"", escaped(file))),
                };
                let each: Vec<String> = lines.text.lines().map(escaped).collect();
                format!(
                    "<pre class=\"{class}\" tabindex=\"0\"{name}>{}\n</pre>\n",
                    each.join("\n")
                )
            }
        };
        self.html.push_str(&html);
    }

    /// Ends the parts that a heading of this level does not belong to.
    fn close(&mut self, level: u8) {
        while let Some((_, end)) = self.open.pop_if(|(own, _)| *own >= level) {
            self.html.push_str(end);
        }
    }

    fn begin(&mut self, heading: &Heading) {
        let level = heading.level;
        match level {
            1 => {}
            // The first part ends the header of the page.
            2 => self.close(1),
            _ => self.close(level),
        }
        let text = written(&heading.text);
        let id = id(&heading.id);
        let begin = match level {
            1 => format!("<h1>{text}</h1>\n"),
            2 => format!("<section{id}>\n<h2>{text}</h2>\n"),
            _ if heading.is_folded => format!("<details{id}><summary>{text}</summary>\n"),
            _ => format!("<h{level}{id}>{text}</h{level}>\n"),
        };
        self.html.push_str(&begin);
        match level {
            2 => self.open.push((level, "</section>\n")),
            _ if heading.is_folded => self.open.push((level, "</details>\n")),
            _ => {}
        }
    }
}

/// Text in the notation of pages.
fn written(text: &str) -> String {
    escaped(&on_page(text))
}

/// The attribute of an id; none for an empty one.
fn id(id: &str) -> String {
    match id {
        "" => String::new(),
        id => format!(" id=\"{}\"", escaped(id)),
    }
}

fn paragraph(look: Look, text: &str) -> String {
    let text = written(text);
    match look {
        Look::Plain => format!("<p>{text}</p>\n"),
        Look::Result => format!("<p class=\"line\">{text}</p>\n"),
        Look::Subject => format!("<p class=\"subject\">{text}</p>\n"),
        Look::Question => format!("<p class=\"question\">{text}</p>\n"),
        Look::Caption => format!("<p class=\"caption\">{text}</p>\n"),
        Look::Trust(level) => format!(
            "<p id=\"trust\" class=\"badge {level}\">{text} <a href=\"#evidence\">Evidence of every cell</a></p>\n"
        ),
    }
}

fn written_list(list: &List) -> String {
    let name = if list.is_ordered { "ol" } else { "ul" };
    let items: String = list.items.iter().map(item).collect();
    format!("<{name} class=\"findings\">\n{items}</{name}>\n")
}

fn item(item: &Item) -> String {
    let links = item.about.iter().map(|(name, id)| {
        let (name, id) = (escaped(name), escaped(id));
        format!("<a href=\"#{id}\">{name}</a>")
    });
    let mut origin: Vec<String> = vec![links.collect::<Vec<_>>().join(", ")];
    if let Some(first) = item.rows.first() {
        origin.push(format!(
            "(<a href=\"#{}\" data-rows=\"{}\">{} row{}</a>)",
            escaped(first),
            escaped(&item.rows.join(" ")),
            item.rows.len(),
            if item.rows.len() == 1 { "" } else { "s" }
        ));
    }
    if !item.basis.is_empty() {
        origin.push(format!("Based on: {}.", escaped(&item.basis)));
    }
    origin.retain(|part| !part.is_empty());
    let text = written(&item.text);
    match origin.is_empty() {
        true => format!("<li>{text}</li>\n"),
        false => format!(
            "<li>{text} <span class=\"basis\">{}</span></li>\n",
            origin.join(" ")
        ),
    }
}

fn written_table(table: &Table) -> String {
    let headings = table.columns.iter().map(|column| {
        let side = if column.right { " class=\"r\"" } else { "" };
        let text = written(&column.heading);
        format!("<th scope=\"col\"{side}>{text}</th>")
    });
    let headings: String = headings.collect();
    let rows = table.columns.first().map_or(0, |column| column.rows());
    let row = |row: usize| {
        let cells = table.columns.iter().map(|column| {
            let value = &column.values[row];
            let class = match (column.right, value.chars().count() > ON_ONE_LINE) {
                (false, false) => "",
                (true, false) => " class=\"r\"",
                (false, true) => " class=\"long\"",
                (true, true) => " class=\"r long\"",
            };
            format!("<td{class}>{}</td>", written(value))
        });
        let id = id(table.ids.get(row).map_or("", String::as_str));
        format!("<tr{id}>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = (0..rows).map(row).collect();
    let title = written(&table.title);
    let notes = match table.notes.is_empty() {
        true => String::new(),
        false => paragraph(Look::Caption, &table.notes.join("; ")),
    };
    format!(
        "<div class=\"table\"><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\"><table>\n<caption>{title}</caption>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n{notes}</div>\n"
    )
}

fn figure(picture: &Picture) -> String {
    let figure = &picture.figure;
    let words = written(figure.description());
    let class = match picture.class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let svg = figure.svg();
    format!(
        "<figure{class}>\n<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"{words}\">\n{svg}</div>\n<figcaption>{words}</figcaption>\n</figure>\n"
    )
}
