//! There is no circle between files: a file takes no names from files that directly or indirectly take names
//! from it.
//!
//! A file may take names from the file above it, of which it is a part (`super::`). Sources are read, not
//! compiled, so that names in macros are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{files_below, reached, rooms};

/// A file by its path below `src`: `claim/causes.rs` is `["claim", "causes"]`, `lib.rs` is empty.
type Place = Vec<String>;

/// The files that each file takes names from.
type Arrows = BTreeMap<Place, BTreeSet<Place>>;

/// The files below a folder, except tests.
fn files(folder: &Path) -> BTreeMap<Place, PathBuf> {
    let place_of = |path: PathBuf| {
        let inner = path
            .strip_prefix(folder)
            .expect("below it")
            .with_extension("");
        let mut place: Place = inner
            .iter()
            .map(|name| name.to_string_lossy().into())
            .collect();
        if ["lib", "main", "mod"].contains(&place.last()?.as_str()) {
            place.pop();
        }
        let is_test = |name: &String| name == "tests" || name.ends_with("_tests");
        (!place.iter().any(is_test)).then_some((place, path))
    };
    let all = files_below(folder, &["rs"]).into_iter();
    all.filter_map(place_of).collect()
}

/// The paths of a `use`, with each of its braces written out.
fn written_out(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else {
        let path = text.split(" as ").next().unwrap_or(text);
        return vec![path.trim().to_owned()];
    };
    let inner = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("one").push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let all = parts.flat_map(|part| written_out(&format!("{before}{}", part.trim())));
    all.collect()
}

/// All paths that a source names, without its tests and comments.
fn paths(source: &str) -> Vec<String> {
    let product = source.split("#[cfg(test)]\nmod tests {").next();
    let lines = product.unwrap_or_default().lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for item in code.split(';') {
        let item = item.lines().skip_while(|line| !is_use(line));
        let item = item.collect::<Vec<_>>().join(" ");
        if let Some((_, path)) = item.split_once("use ") {
            found.extend(written_out(path));
        }
    }
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_of_path(c));
    let inline = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    found.extend(inline.map(str::to_owned));
    found
}

/// Whether an item for the whole file begins here.
fn is_use(line: &str) -> bool {
    let item = line.strip_prefix("pub").map_or(line, |rest| {
        rest.trim_start_matches(|c| c != ' ').trim_start()
    });
    item.starts_with("use ") && !line.starts_with(' ')
}

/// The file that a path leads to.
fn target(from: &Place, path: &str, files: &BTreeMap<Place, PathBuf>) -> Option<Place> {
    let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut at = from.clone();
    if parts.first() == Some(&"crate") {
        at.clear();
    }
    while let Some(first @ ("crate" | "self" | "super")) = parts.first().copied() {
        if first == "super" {
            at.pop();
        }
        parts.remove(0);
    }
    let mut found = files.contains_key(&at).then(|| at.clone());
    for part in parts {
        at.push(part.to_owned());
        match files.contains_key(&at) {
            true => found = Some(at.clone()),
            false => break,
        }
    }
    found.filter(|place| !place.is_empty() && !from.starts_with(place))
}

fn arrows(files: &BTreeMap<Place, PathBuf>) -> Arrows {
    let of = |(place, path): (&Place, &PathBuf)| {
        let source = fs::read_to_string(path).expect("a source");
        let all = paths(&source).into_iter();
        let targets = all.filter_map(|path| target(place, &path, files));
        (place.clone(), targets.collect())
    };
    files.iter().map(of).collect()
}

#[test]
fn files_take_no_names_in_circles() {
    let (mut circles, mut seen) = (Vec::new(), 0);
    for (room, folder) in rooms() {
        let arrows = arrows(&files(&folder.join("src")));
        seen += arrows.values().map(BTreeSet::len).sum::<usize>();
        for place in arrows.keys() {
            if reached(&arrows, place).contains(place) {
                circles.push(format!("{room}: {}", place.join("/")));
            }
        }
    }
    assert!(
        seen > 1000,
        "{seen} arrows: the sources are not read as they are written"
    );
    assert!(
        circles.is_empty(),
        "these files take names from each other in a circle; move what both need below both:\n{}",
        circles.join("\n")
    );
}
