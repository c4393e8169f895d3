//! `iolab serve`: what it refuses before anything is mounted. Serving itself needs FUSE and is tested in iolab-truth.

use std::fs;

use crate::support::{entries, folder, refusals};

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("empty")).unwrap();
    fs::create_dir(path.join("full")).unwrap();
    fs::write(path.join("full/mine"), "precious").unwrap();
    let broken = "title = \"t\"\nsource = []\n[model.server]\nslots = 0\ninner.memory = 5\n";
    fs::write(path.join("broken.toml"), broken).unwrap();
    let told = refusals(
        path,
        &[
            &["serve", "model:hp-97561", "empty"],
            &["serve", "broken.toml", "empty"],
            &["serve", "model:hp-97560", "none"],
            &["serve", "model:hp-97560", "broken.toml"],
            &["serve", "model:hp-97560", "full"],
            &["serve", "model:hp-97560", "full", "--ledger", "l.csv"],
            &["serve", "model:hp-97560", "empty", "--speed", "0"],
            &["serve", "model:hp-97560", "empty", "--memory", "1kB"],
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(entries(&path.join("full")), ["mine"]);
}
