//! Finds the built-in experiments and suites, so that adding one is adding its file.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for folder in ["experiments", "suites"] {
        watch(folder);
        let rows: String = names(folder, ".toml")
            .iter()
            .map(|name| {
                let path = fs::canonicalize(format!("{folder}/{name}.toml")).expect("it was found");
                check_name(&path, &format!("name = \"{name}\""));
                format!("    ({name:?}, include_str!({path:?})),\n")
            })
            .collect();
        let list = format!("&[\n{rows}]\n");
        fs::write(Path::new(&out).join(format!("{folder}.rs")), list).expect("a folder of cargo");
    }
}

/// Builds anew when the files of a folder change, and when the whole checkout is moved: the lists name them by absolute paths.
fn watch(folder: &str) {
    let path = fs::canonicalize(folder).expect("a folder of this package");
    println!("cargo::rerun-if-changed={}", path.display());
}

/// The names of the files in a folder with this ending, without it.
fn names(folder: &str, ending: &str) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder of this package");
    let name = |file: std::io::Result<fs::DirEntry>| {
        let name = file.expect("readable").file_name();
        name.into_string().expect("UTF-8")
    };
    let names = files.map(name);
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
        .collect();
    names.sort_unstable();
    names
}

/// Fails if the name in a file differs from the name of the file, by which it is found.
fn check_name(path: &Path, line: &str) {
    let text = fs::read_to_string(path).expect("readable");
    assert!(text.contains(line), "{} lacks {line}", path.display());
}
