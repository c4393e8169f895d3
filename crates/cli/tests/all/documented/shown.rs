//! Places in which commands are shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{root, run};

/// The documents for people, in the top folder and in docs.
pub(super) fn documents() -> Vec<PathBuf> {
    let of = |folder: PathBuf| {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|e| e == "md"))
            .collect::<Vec<_>>()
    };
    [of(root()), of(root().join("docs"))].concat()
}

/// Every command that is shown, with the place where it is shown first.
pub(super) fn shown(place: &Path) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let at = path.file_name().unwrap().to_string_lossy();
        for command in in_markdown(&text) {
            shown.entry(command).or_insert(at.to_string());
        }
    }
    for name in definitions(place) {
        let text = run(place, &["show", &name]).expect(0).stdout;
        for line in text.lines().filter(|line| line.starts_with('#')) {
            if let Some((_, command)) = line.split_once(" iolab ") {
                shown
                    .entry(format!("iolab {command}"))
                    .or_insert(format!("show {name}"));
            }
        }
    }
    for words in commands(place) {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let text = run(place, &arguments).expect(0).stdout;
        for command in in_help(&text) {
            shown
                .entry(command)
                .or_insert(format!("iolab {}", arguments.join(" ")));
        }
    }
    // A sentence may begin with the program's name too.
    let known: Vec<String> = commands(place)
        .into_iter()
        .filter_map(|words| words.into_iter().next())
        .collect();
    shown.retain(|command, _| {
        let second = command.split(' ').nth(1).unwrap_or_default();
        second.starts_with('-') || second == "help" || known.iter().any(|name| name == second)
    });
    shown
}

/// Names of all built-in experiments, suites and requirements.
fn definitions(place: &Path) -> Vec<String> {
    let list = run(place, &["list"]).expect(0).stdout;
    let lines = list.lines().filter(|line| line.starts_with("  "));
    let lines = lines.filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// The commands with a help of their own; none of their words for the program itself.
fn commands(place: &Path) -> Vec<Vec<String>> {
    let of = |words: &[&str]| subcommands(&run(place, words).expect(0).stdout);
    let model = of(&["model", "--help"]).into_iter();
    let model = model.map(|name| vec!["model".to_owned(), name]);
    let all = run(place, &["help", "all"]).expect(0).stdout;
    let all = names(all.lines()).into_iter().map(|name| vec![name]);
    [Vec::new()].into_iter().chain(all).chain(model).collect()
}

fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:");
    names(lines.skip(1).take_while(|line| line.starts_with("  ")))
}

fn names<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names = lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Lines of code blocks, and code in sentences.
fn in_markdown(text: &str) -> Vec<String> {
    let (mut all, mut prose, mut fenced) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            let line = line.trim_start().trim_start_matches("$ ");
            all.extend(line.starts_with("iolab ").then(|| line.to_owned()));
        } else {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    let code = prose.split('`').skip(1).step_by(2);
    all.extend(
        code.filter(|code| code.starts_with("iolab "))
            .map(str::to_owned),
    );
    all.iter().map(|command| without_comment(command)).collect()
}

/// Examples, and commands in quotes.
fn in_help(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let examples = lines.filter(|line| line.starts_with("iolab "));
    let examples = examples.map(|line| line.split("  ").next().unwrap_or(line));
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quoted = joined.split("'iolab ").skip(1);
    let quoted = quoted.filter_map(|rest| rest.split('\'').next());
    let quoted: Vec<String> = quoted.map(|rest| format!("iolab {rest}")).collect();
    examples.map(without_comment).chain(quoted).collect()
}

fn without_comment(line: &str) -> String {
    line.split(" #").next().unwrap_or(line).trim().to_owned()
}
