//! `iolab model`: the catalogue and definitions.

use std::fs;

use serde_json::Value;

use crate::support::{folder, run};

#[test]
fn list_and_show() {
    let folder = folder();
    let listed = run(folder.path(), &["model", "list"]).expect(0).stdout;
    let json = run(folder.path(), &["model", "list", "--format", "json"]).expect(0);
    let all: Value = serde_json::from_str(&json.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert!(all.len() >= 14);
    for model in all {
        let name = model["name"].as_str().unwrap();
        assert!(listed.contains(name) && listed.contains(model["title"].as_str().unwrap()));
        // What is shown is a definition that the other commands take as a file.
        let shown = run(folder.path(), &["model", "show", name])
            .expect(0)
            .stdout;
        fs::write(folder.path().join("copy.toml"), &shown).unwrap();
        let again = run(folder.path(), &["model", "show", "copy.toml"]).expect(0);
        assert_eq!(again.stdout, shown);
    }
}
