//! Models of measured drives compared with the measurements.

use iolab_models::build;
use iolab_workload::virtual_disk::ServedFrom;

#[path = "../../examples/service_times.rs"]
mod service_times;

use crate::built_in;
use service_times::{Replayed, replay};

/// Name in the catalogue, name of the whole trace, published rms in us, and the rms that this model reaches, in ms.
const DRIVES: [(&str, &str, u32, f64); 7] = [
    ("atlas10k", "atlas10k.trace", 268, 0.0947),
    ("cheetah4lp", "cheetah4LP.trace", 318, 0.3106),
    ("cheetah9lp", "cheetah9LP.trace", 107, 0.1063),
    ("hp-c2247a", "hp_c2247a.trace", 90, 0.0919),
    ("hp-c2490a", "hp_c2490a.trace", 254, 0.2483),
    ("hp-c3323a", "hp_c3323a.trace", 306, 0.2751),
    ("dec-rz26", "dec_rz26.trace", 340, 0.4327),
];

fn replayed<'a>(name: &str, trace: &'a str) -> Vec<Replayed<'a>> {
    let definition = built_in(name);
    let model = build(&definition, 0).unwrap();
    let replayed = replay(model, definition.block(), trace);
    replayed.map(|one| one.expect("a request")).collect()
}

/// Root mean square of the horizontal distance between the distributions of measured and modelled service times, ms, at the
/// quantiles 0.0001, 0.0002, ... 0.9999: the demerit figure of Ruemmler and Wilkes, IEEE Computer 27(3), 1994.
fn rms(name: &str, trace: &str) -> f64 {
    let replayed = replayed(name, trace);
    assert!(replayed.iter().all(|one| one.served != ServedFrom::Refused));
    let sorted = |of: fn(&Replayed<'_>) -> u64| {
        let mut times: Vec<f64> = replayed.iter().map(|one| of(one) as f64 / 1e6).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let [measured, modelled] = [sorted(|one| one.measured), sorted(|one| one.modelled)];
    let squares: f64 = (1..10_000)
        .map(|k| {
            let p = f64::from(k) / 1e4;
            (quantile(&measured, p) - quantile(&modelled, p)).powi(2)
        })
        .sum();
    (squares / 9_999.0).sqrt()
}

/// A quantile of a sorted sample, with a straight line between order statistics (type 7 of Hyndman and Fan).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let h = (sorted.len() - 1) as f64 * p;
    let low = h.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (h - low as f64) * (sorted[high] - sorted[low])
}

/// Compares the whole traces, which are not part of the project: `IOLAB_DRIVES` names a folder with them.
#[test]
fn whole_traces_are_met_as_documented() {
    let Some(folder) = std::env::var_os("IOLAB_DRIVES") else {
        return needs::skip(needs::Need::DriveTraces, "the variable is not set");
    };
    let mut no_worse = 0;
    for (name, file, published, documented) in DRIVES {
        let published = f64::from(published) / 1e3;
        let trace = std::fs::read_to_string(std::path::Path::new(&folder).join(file)).unwrap();
        let rms = rms(name, &trace);
        println!("{name}: {rms:.4} ms, published {published} ms");
        assert!(
            (rms - documented).abs() < 5e-5,
            "{name}: {rms} ms, documented {documented} ms"
        );
        assert!(
            rms <= 1.5 * published,
            "{name}: {rms} ms, published {published} ms"
        );
        no_worse += u32::from(rms <= published);
    }
    assert!(no_worse >= 5, "no worse than published: {no_worse} of 7");
}

/// Compares the first 400 requests of each trace: few enough to keep, and enough to show a change of the model.
#[test]
fn the_start_of_each_trace_is_met() {
    let excerpts = [
        ("atlas10k", include_str!("traces/atlas10k.trace"), 0.1840),
        (
            "cheetah4lp",
            include_str!("traces/cheetah4lp.trace"),
            0.3589,
        ),
        (
            "cheetah9lp",
            include_str!("traces/cheetah9lp.trace"),
            0.2406,
        ),
        ("hp-c2247a", include_str!("traces/hp-c2247a.trace"), 0.2598),
        ("hp-c2490a", include_str!("traces/hp-c2490a.trace"), 0.3492),
        ("hp-c3323a", include_str!("traces/hp-c3323a.trace"), 0.4256),
        ("dec-rz26", include_str!("traces/dec-rz26.trace"), 0.7482),
    ];
    for (name, trace, expected) in excerpts {
        let rms = rms(name, trace);
        assert!(
            (rms - expected).abs() < 5e-5,
            "{name}: {rms:.4} ms, was {expected} ms"
        );
    }
}

/// The only trace with information about the drive's buffer. The model has all its hits and one more, a read
/// that starts with the last block that was read ahead.
#[test]
fn model_hits_where_the_c2247a_does() {
    let replayed = replayed("hp-c2247a", include_str!("traces/hp-c2247a.trace"));
    let count = |buffer: &str, served: ServedFrom| {
        let of_both = replayed
            .iter()
            .filter(|one| one.buffer == buffer && one.served == served);
        of_both.count()
    };
    let table = [
        ("Hit", ServedFrom::Hit),
        ("Hit", ServedFrom::Partial),
        ("Hit", ServedFrom::Miss),
        ("Miss", ServedFrom::Hit),
        ("Miss", ServedFrom::Partial),
    ];
    assert_eq!(
        table.map(|(buffer, served)| count(buffer, served)),
        [61, 0, 0, 0, 1]
    );
}
