//! Comparison of runs whose definition cannot be read.

use iolab_plan::experiment::Experiment;
use iolab_synthetic::size_curve;

use crate::compare::of;

#[test]
fn files_without_readable_definition_are_named() {
    let of_toml = |toml: &str| {
        let mut run = size_curve("read-size", &[("4KiB", 100.0)]);
        run.experiment.toml = toml.to_owned();
        run
    };
    let definition = Experiment::find("read-size").expect("built in");
    let definition = definition.to_toml().expect("valid");
    let (known, strange) = (of_toml(&definition), of_toml("x"));
    let undefined = |base, new| of(base, new, None).expect("compared").undefined;
    assert_eq!(undefined(&known, &strange), ["new"]);
    assert_eq!(undefined(&strange, &known), ["base"]);
    assert!(undefined(&known, &known.clone()).is_empty());
}
