use std::path::PathBuf;

use crate::trace::Reading;

use super::*;

/// Exponential gaps of this mean for requests of 4 and 16 KiB, from draws that are spread evenly.
fn written(folder: &tempfile::TempDir, gap_us: impl Fn(u64) -> f64) -> PathBuf {
    let mut text = "time_us,op,offset,bytes\n".to_owned();
    let mut at = 0.0;
    for number in 0..4000u64 {
        let draw = ((number * 2_654_435_761) % 10_007) as f64 / 10_007.0;
        at += -(1.0 - draw).ln() * gap_us(number);
        let kind = if number.is_multiple_of(4) { "W" } else { "R" };
        let bytes = if number % 10 < 7 { 4096 } else { 16_384 };
        let offset = (number * 7919 % 65_521) * 4096;
        text += &format!("{at:.3},{kind},{offset},{bytes}\n");
    }
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn of(gap_us: impl Fn(u64) -> f64) -> Distilled {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::open(&Reading {
        trace: written(&folder, gap_us),
        ..Reading::default()
    })
    .unwrap();
    let survey = Survey::of(&trace).unwrap();
    distilled(&trace, &survey).unwrap()
}

#[test]
fn steady_random_requests_are_distilled() {
    let distilled = of(|_| 1000.0);
    let far = distilled.distances.iter().find(|own| own.value > 0.05);
    assert_eq!(far, None, "{distilled:?}");
    let [reads, writes] = distilled.groups.as_slice() else {
        panic!("{distilled:?}");
    };
    assert!(
        (740.0..760.0).contains(&reads.rate) && writes.writes,
        "{distilled:?}"
    );
    assert_eq!((reads.sizes.len(), reads.is_sequential), (2, false));
}

#[test]
fn bursts_and_another_second_half_are_far() {
    let value = |distilled: &Distilled, what: &str| {
        let found = distilled.distances.iter().find(|own| own.what == what);
        found.unwrap().value
    };
    // 50 requests at once, then a pause.
    let bursts = of(|number| {
        if number.is_multiple_of(50) {
            50_000.0
        } else {
            1.0
        }
    });
    assert!(value(&bursts, "gaps") > 0.5, "{bursts:?}");
    let faster = of(|number| if number < 2000 { 1000.0 } else { 250.0 });
    assert!((0.7..0.8).contains(&value(&faster, "rate")), "{faster:?}");
}
