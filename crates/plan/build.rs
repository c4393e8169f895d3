//! Lists the built-in experiments, suites and requirements, so that a new one needs nothing but its file.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for folder in ["experiments", "suites", "requirements"] {
        println!("cargo::rerun-if-changed={folder}");
        let files = fs::read_dir(folder).expect("a folder of this package");
        let mut names: Vec<String> = files
            .map(|file| {
                file.expect("readable")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        names.sort_unstable();
        let rows: String = names
            .iter()
            .map(|name| {
                let path = fs::canonicalize(format!("{folder}/{name}.toml")).expect("it was found");
                format!("    ({name:?}, include_str!({path:?})),\n")
            })
            .collect();
        let list = format!("&[\n{rows}]\n");
        fs::write(Path::new(&out).join(format!("{folder}.rs")), list).expect("a folder of cargo");
    }
}
