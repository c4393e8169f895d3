//! docs/REFERENCE.md is what its generator prints, and pages that the sources name exist.

use std::fs;

use crate::support::{files_below, folder, root};

// Parts of examples: Cargo builds their programs only where all targets are tested.
#[allow(unreachable_pub)]
#[path = "../../examples/reference/page.rs"]
mod generator;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/man.rs"]
pub(crate) mod man;

#[test]
fn reference_matches_the_rows() {
    let page = fs::read_to_string(root().join("docs/REFERENCE.md")).expect("the reference");
    assert!(
        page == generator::page(iolab::program(), &iolab::lists()),
        "docs/REFERENCE.md differs: cargo run -p iolab --example reference > docs/REFERENCE.md"
    );
}

/// The page whose name ends here, `METHODS.md`, and the heading that follows it in quotes.
fn named(text: &str, end: usize) -> Option<(&str, Option<&str>)> {
    let before = text.get(..end)?;
    let begin = before
        .rfind(|c: char| !c.is_ascii_uppercase())
        .map_or(0, |at| at + 1);
    let heading = text[end..].strip_prefix(".md, \"");
    let title = heading.and_then(|rest| rest.split('"').next());
    (end - begin > 1).then(|| (&before[begin..], title))
}

#[test]
fn pages_that_sources_name_exist() {
    let folders = ["crates", "instruments", "docs"].map(|folder| root().join(folder));
    let endings = ["rs", "toml", "py", "sh"];
    let files = folders
        .iter()
        .flat_map(|folder| files_below(folder, &endings));
    let mut mistakes = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for (at, _) in text.match_indices(".md") {
            let Some((name, title)) = named(&text, at) else {
                continue;
            };
            let places = ["docs", "."].map(|folder| root().join(folder).join(format!("{name}.md")));
            let page = places.iter().find_map(|path| fs::read_to_string(path).ok());
            let has = |title: &str| {
                let lines = page.iter().flat_map(|page| page.lines());
                let mut headings = lines.filter(|line| line.starts_with('#'));
                headings.any(|line| line.trim_start_matches('#').trim() == title)
            };
            if page.is_none() || title.is_some_and(|title| !has(title)) {
                mistakes.push(format!("{}: {name}.md {title:?}", file.display()));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// The links of a page to files, with the headings that they lead to.
fn links(page: &str) -> Vec<(&str, Option<&str>)> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    let own = targets.filter(|target| !target.contains("://"));
    own.map(|target| match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    })
    .collect()
}

/// A heading as an anchor.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut mistakes = Vec::new();
    let top = fs::read_dir(root()).expect("the repository");
    let docs = fs::read_dir(root().join("docs")).expect("the pages");
    let pages = top.chain(docs).flatten().map(|entry| entry.path());
    for path in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&path).expect("a page");
        for (file, heading) in links(&text) {
            let to = match file.is_empty() {
                true => path.clone(),
                false => path.parent().expect("a folder").join(file),
            };
            let page = fs::read_to_string(&to).unwrap_or_default();
            let has = |wanted: &str| {
                page.lines()
                    .any(|line| line.starts_with('#') && anchor(line) == wanted)
            };
            if !to.exists() || heading.is_some_and(|wanted| !has(wanted)) {
                mistakes.push(format!("{}: {file} {heading:?}", path.display()));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_command_has_a_man_page() {
    let folder = folder();
    man::write(folder.path()).expect("written");
    for command in iolab::program().get_subcommands() {
        let page = folder
            .path()
            .join(format!("iolab-{}.1", command.get_name()));
        let text = fs::read_to_string(&page).unwrap_or_default();
        assert!(text.contains(".SH OPTIONS"), "{}", page.display());
    }
    assert!(folder.path().join("iolab.1").exists());
}
