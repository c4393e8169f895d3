//! The rooms of the workspace: docs/ARCHITECTURE.md draws the dependencies of the `Cargo.toml` files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::support::{files_below, reached, rooms, root};

/// Rooms that read run files, and must not depend on I/O.
const READERS: [&str; 3] = ["analysis", "figure", "report"];
/// Rooms that do I/O or start programs.
const DOERS: [&str; 5] = ["doctor", "engine", "host", "runner", "storage"];

/// The rooms that each room depends on, except dependencies of its tests.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rooms named in the sections of a manifest whose headings match.
fn named_in(manifest: &str, is_one: fn(&str) -> bool) -> BTreeSet<String> {
    let mut heading = "";
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        match line.strip_prefix("iolab-").filter(|_| is_one(heading)) {
            _ if line.starts_with('[') => heading = line,
            Some(room) => names.extend(room.split(['.', ' ', '=']).next().map(str::to_owned)),
            None => {}
        }
    }
    names
}

/// The arrows of the `Cargo.toml` files.
fn declared() -> Arrows {
    declared_under(|heading| heading.ends_with("dependencies]") && !heading.contains("dev-"))
}

/// The arrows under headings that match.
fn declared_under(is_one: fn(&str) -> bool) -> Arrows {
    let rooms = rooms().into_iter();
    rooms
        .map(|(room, folder)| (room, named_in(&manifest(&folder), is_one)))
        .collect()
}

fn manifest(room: &Path) -> String {
    fs::read_to_string(room.join("Cargo.toml")).expect("a manifest")
}

/// The arrows that docs/ARCHITECTURE.md draws.
fn drawn() -> Arrows {
    let page = read("docs/ARCHITECTURE.md");
    let lines = page.lines().filter(|line| line.starts_with("    "));
    lines
        .filter_map(|line| line.split_once(" -> "))
        .filter_map(|(room, arrows)| {
            let name = room.split_whitespace().next()?;
            let names = arrows.split(", ").map(|arrow| arrow.trim().to_owned());
            let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_lowercase());
            Some((name.to_owned(), names.filter(is_name).collect()))
        })
        .collect()
}

#[test]
fn the_rooms_are_as_they_are_drawn() {
    let mut declared = declared();
    let drawn = drawn();
    // It runs the program, takes models from the same source and answers FUSE by the same file system; the program needs all others.
    let truth = declared.remove("truth").expect("the room of known truths");
    assert_eq!(truth, BTreeSet::from(["models".to_owned()]));
    let all = declared.keys().filter(|room| *room != "cli").cloned();
    let all: BTreeSet<String> = all.collect();
    let cli = declared
        .remove("cli")
        .expect("the room of the command line");
    assert!(cli.is_subset(&all), "{cli:?}");
    let others = drawn.into_iter().filter(|(room, _)| all.contains(room));
    assert_eq!(declared, others.collect(), "docs/ARCHITECTURE.md");
}

/// Rooms that read run files, and all that the program has without its feature `measure`: what only Linux has is for that feature, in the
/// program as in instruments.
#[test]
fn readers_reach_no_io() {
    let is_everywhere: fn(&str) -> bool = |heading| heading == "[dependencies]";
    let arrows = declared_under(is_everywhere);
    let without_measure = named_in(&read("crates/cli/Cargo.toml"), is_everywhere);
    assert!(without_measure.contains("report"), "{without_measure:?}");
    for reader in without_measure.iter().map(String::as_str).chain(READERS) {
        let reached = reached(&arrows, &reader.to_owned());
        for doer in DOERS {
            assert!(arrows.contains_key(doer), "no room {doer}");
            assert!(
                !reached.contains(doer) && reader != doer,
                "{reader} reaches {doer}"
            );
        }
    }
}

#[test]
fn only_the_program_names_instruments() {
    let is_instrument = |name: &String| {
        rooms()[name]
            .parent()
            .is_some_and(|all| all.ends_with("instruments"))
    };
    let all = declared().into_iter();
    // Only tests link the room of known truths.
    for (room, names) in all.filter(|(room, _)| !["cli", "truth"].contains(&room.as_str())) {
        let named: Vec<&String> = names.iter().filter(|name| is_instrument(name)).collect();
        assert_eq!(named, [""; 0], "{room}");
    }
}

/// Cargo looks for examples in the documentation of a room, and for tests among its sources, only if its manifest lets
/// it: looking takes 0.2 s a room, and tests compile a library a second time.
#[test]
fn examples_and_tests_among_sources_are_run() {
    for (room, folder) in rooms() {
        let manifest = manifest(&folder);
        let lib = manifest.split("\n[").find(|part| part.starts_with("lib]"));
        let is_off = |key: &str| lib.is_some_and(|part| part.contains(key));
        let has_example = sources(&folder).iter().any(|text| has_example(text));
        assert!(
            !(has_example && is_off("\ndoctest = false")),
            "{room} has an example in its documentation: take `doctest = false` out of its Cargo.toml"
        );
        let is_test = |text: &String| text.contains("#[cfg(test)]") || text.contains("#[test]");
        let has_test = sources(&folder.join("src")).iter().any(is_test);
        assert!(
            !(has_test && is_off("\ntest = false")),
            "{room} has tests among its sources: take `test = false` out of its Cargo.toml"
        );
    }
}

/// Cargo packs what a link points to.
#[test]
fn every_link_of_the_tree_has_a_target() {
    let (mut dangling, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let kind = entry.file_type().expect("a type");
            // What Git and Cargo make belongs to no tree, and goes away while tests run.
            let is_made = [".git", "target"]
                .map(|name| root().join(name))
                .contains(&entry.path());
            if kind.is_dir() && !is_made {
                folders.push(entry.path());
            } else if kind.is_symlink() && !entry.path().exists() {
                dangling.push(entry.path());
            }
        }
    }
    assert!(dangling.is_empty(), "no target: {dangling:?}");
}

/// Whether documentation comments hold code that would be run: any but plain text.
fn has_example(source: &str) -> bool {
    let lines = source.lines().map(str::trim_start);
    let documented = lines.filter_map(|line| {
        line.strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
    });
    let fences = documented.filter_map(|line| line.trim().strip_prefix("```"));
    // Every other fence ends what the one before began.
    fences.step_by(2).any(|language| language != "text")
}

/// The text of every file of Rust below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let files = files_below(folder, &["rs"]).into_iter();
    files
        .map(|path| fs::read_to_string(path).unwrap_or_default())
        .collect()
}
