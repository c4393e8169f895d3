//! JSON documents of commands that measure are valid against their schemas. `golden.rs` has documents of stored runs.

use crate::support::json_schema::assert_as_described;
use crate::support::words::words;
use crate::support::{Done, folder, run};

#[test]
#[cfg_attr(
    not(all(feature = "models", feature = "fit")),
    ignore = "it measures a model"
)]
fn documents_of_measuring_commands_are_as_described() {
    let folder = folder();
    let path = folder.path();
    let json = |done: &Done| serde_json::from_str::<serde_json::Value>(&done.stdout).expect("JSON");
    let fit = run(
        path,
        &words!("fit etcd model:sata-7200 --seed 1 -o out --format json"),
    );
    let fit = json(&fit);
    assert_as_described(path, "fit", &fit);
    assert_eq!(fit["iolab_version"], env!("CARGO_PKG_VERSION"));
}

#[test]
#[cfg(feature = "gate")]
fn a_gate_of_few_runs_is_as_described() {
    let folder = folder();
    let path = folder.path();
    std::fs::create_dir(path.join("runs")).expect("made");
    crate::support::with_runs(path, &["runs/a.iolab", "runs/b.iolab", "runs/c.iolab"]);
    let words = words!("gate --history runs runs/c.iolab --format json");
    let gate = serde_json::from_str(&run(path, &words).expect(5).stdout).expect("JSON");
    assert_as_described(path, "gate", &gate);
}
