//! Files below `tests/lines` of a crate: lines that begin with `$ `, each with its outcome, and comments on them. The tests of several
//! crates include this file.

use std::fs;
use std::path::Path;

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
    let mut all = String::new();
    let kept = text.lines().filter(|line| line.starts_with(['#', '$']));
    for line in kept {
        all += &format!("{line}\n");
        if let Some(tried) = line.strip_prefix("$ ") {
            let outcome = made(tried);
            let outcome = outcome.lines().filter(|line| !line.trim().is_empty());
            all.extend(outcome.map(|line| format!("  {}\n", line.trim_end())));
        }
    }
    all
}
