//! Files below `tests/lines` of a crate: lines that begin with `$ `, each with its outcome, and comments on them. The tests of several
//! crates include this file.

use std::fs;
use std::path::Path;

use crate::cases::{ARROW, Cases};

/// Tries the lines of these files. To add a case, write a line and accept the snapshot.
pub(crate) fn check(names: &[&str], made: impl Fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lines");
    for name in names {
        let text = fs::read_to_string(folder.join(format!("{name}.snap"))).expect(name);
        insta::with_settings!({
            snapshot_path => &folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(*name, made_anew(&text, &made)) });
    }
}

/// The comments and lines of a file, with every outcome made anew.
fn made_anew(text: &str, made: impl Fn(&str) -> String) -> String {
    let mut all = Cases::default();
    for line in text.lines().filter(|line| line.starts_with(['#', '$'])) {
        match line.strip_prefix("$ ") {
            Some(tried) => {
                let tried = tried.split(ARROW).next().expect("a part").trim_end();
                all.add(&format!("$ {tried}"), &made(tried));
            }
            None => all.text += &format!("{line}\n"),
        }
    }
    all.text
}
