//! The commands of cargo that the documents show: what they name is there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files_below;

/// Every mistake in the commands of cargo of these texts, each with its place.
pub(super) fn mistakes(root: &Path, documents: &[PathBuf]) -> Vec<String> {
    let mut mistakes = Vec::new();
    for document in documents {
        let text = fs::read_to_string(document).expect("a document");
        for command in commands(&text) {
            if let Some(what) = mistake(root, &command) {
                mistakes.push(format!("{}: '{command}': {what}", document.display()));
            }
        }
    }
    mistakes
}

/// The commands of a text that name a package, without what follows in the same line.
fn commands(text: &str) -> Vec<String> {
    let starts = ["cargo test -p ", "cargo bench -p ", "cargo run -"];
    let begins = starts.iter().flat_map(|start| text.match_indices(start));
    begins
        .map(|(at, _)| {
            let end = text[at..].find(['`', '#', '\n', ';', ',', '|']);
            let command = &text[at..end.map_or(text.len(), |end| at + end)];
            command.trim().to_owned()
        })
        .collect()
}

fn mistake(root: &Path, command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let words = words.split(|word| *word == "--").next()?;
    let after = |option: &str| {
        let place = words.iter().position(|word| *word == option)?;
        words.get(place + 1).copied()
    };
    let package = after("-p")?;
    let name = package.strip_prefix("iolab-").unwrap_or("cli");
    let folders = ["crates", "instruments"].map(|rooms| root.join(rooms).join(name));
    let folder = folders.iter().find(|folder| folder.exists())?;
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains(&format!("name = \"{package}\"")) {
        return Some(format!("no package {package}"));
    }
    for (option, place) in [
        ("--example", "examples"),
        ("--bench", "benches"),
        ("--test", "tests"),
    ] {
        let Some(target) = after(option) else {
            continue;
        };
        let file = folder.join(place).join(format!("{target}.rs"));
        let has_path = manifest.contains(&format!("name = \"{target}\"\npath = "));
        if !has_path && !file.exists() && !folder.join(place).join(target).exists() {
            return Some(format!("no {target} in {place}"));
        }
    }
    let takes_value = |word: &str| matches!(word, "-p" | "--test" | "--features" | "--bench");
    let filter = words.iter().enumerate().skip(2).find(|(i, word)| {
        words[1] == "test" && !word.starts_with('-') && !takes_value(words[i - 1])
    });
    let last = filter?.1.rsplit("::").find(|part| !part.is_empty())?;
    let is_named = files_below(folder, &["rs"]).iter().any(|path| {
        path.file_stem().is_some_and(|stem| stem == last)
            || fs::read_to_string(path).is_ok_and(|text| {
                text.contains(&format!("mod {last}"))
                    || text.lines().any(|line| {
                        line.trim_start()
                            .strip_prefix("fn ")
                            .is_some_and(|rest| rest.contains(last))
                    })
            })
    });
    (!is_named).then(|| format!("no test of {package} is called {last}"))
}
