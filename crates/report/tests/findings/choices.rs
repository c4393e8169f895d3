//! Rules about what to choose and what not to conclude, each once where it speaks and once where it keeps silent.

use iolab_analysis::analysis::analyse;
use iolab_report::findings::{
    limits, no_given_load, one_cache_state, one_place, tail_unknown, untouched,
};
use iolab_workload::trial::CacheState;

use crate::text;
use iolab_synthetic::{rate_report, record, size_curve};

#[test]
fn few_requests_have_no_tail() {
    let mut record = size_curve("x", &[("4KiB", 40.0), ("8KiB", 80.0)]);
    for sample in &mut record.samples {
        sample.operations.read.requests = 367;
    }
    let found = text(&tail_unknown(&analyse(&record)));
    assert!(
        found.starts_with("All cells had too few requests"),
        "{found}"
    );
}

#[test]
fn limits_name_what_was_not_asked() {
    let run = analyse(&size_curve("x", &[("4KiB", 100.0)]));
    let found = text(&limits(&[&run, &run]));
    for part in [
        "One target was measured, in its state at that time",
        "Regions larger than 1GiB were not measured",
        "in a closed loop",
        "with cache=direct: programs that use the page cache",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn limits_that_were_overcome_are_silent() {
    let mut direct = size_curve("x", &[("4KiB", 100.0)]);
    rate_report(&mut direct, 0, 1000, 0);
    let mut hot = size_curve("y", &[("4KiB", 100.0)]);
    hot.cells[0].spec.trial.cache = CacheState::Hot;
    let both = [&analyse(&direct), &analyse(&hot)];
    assert_eq!(no_given_load(&both), None);
    assert_eq!(one_cache_state(&both), None);
    let nothing = [&analyse(&record("x", &[]))];
    assert_eq!(one_place(&nothing), None);
    assert_eq!(untouched(&nothing), None);
    assert!(limits(&nothing).is_empty());
}
