//! `iolab serve`: what it refuses before anything is mounted. Serving itself needs FUSE and is tested in iolab-truth.

use std::fs;

use crate::support::{entries, folder, run};

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("empty")).unwrap();
    fs::create_dir(path.join("full")).unwrap();
    fs::write(path.join("full/mine"), "precious").unwrap();
    let broken = "title = \"t\"\nsource = []\n[model.server]\nslots = 0\ninner.memory = 5\n";
    fs::write(path.join("broken.toml"), broken).unwrap();
    let before = entries(path);
    for (arguments, code, part) in [
        (&["model:hp-97561", "empty"][..], 2, "hp-97560"),
        (&["broken.toml", "empty"], 2, "broken.toml"),
        (&["model:hp-97560", "none"], 2, "mkdir"),
        (&["model:hp-97560", "broken.toml"], 2, "broken.toml"),
        (&["model:hp-97560", "full"], 3, "not empty"),
        (
            &["model:hp-97560", "full", "--ledger", "l.csv"],
            3,
            "not empty",
        ),
        (&["model:hp-97560", "empty", "--speed", "0"], 2, "0.001"),
        (&["model:hp-97560", "empty", "--memory", "1kB"], 2, "kB"),
    ] {
        let done = run(path, &[&["serve"], arguments].concat()).expect(code);
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!(entries(path), before);
    assert_eq!(entries(&path.join("full")), ["mine"]);
}
