//! Models of measured drives compared with the measurements.

use iolab_diskmodel::definition::catalogue;
use iolab_diskmodel::drive_comparison::{Check, check, distance, parse_trace};
use iolab_diskmodel::{ServedFrom, build};

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

fn checked(name: &str, trace: &str) -> Check {
    let definition = catalogue::find(name).unwrap().unwrap();
    check(&definition, &parse_trace(trace).unwrap()).unwrap()
}

/// The whole traces are not part of the project. `IOLAB_DRIVES` names a folder with them.
#[test]
fn whole_traces_are_met_as_documented() {
    let Some(folder) = std::env::var_os("IOLAB_DRIVES") else {
        return needs::skip(needs::Need::DriveTraces, "the variable is not set");
    };
    let mut no_worse = 0;
    for (name, file, published, documented) in DRIVES {
        let published = f64::from(published) / 1e3;
        let trace = std::fs::read_to_string(std::path::Path::new(&folder).join(file)).unwrap();
        let rms = checked(name, &trace).all().unwrap().rms;
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

/// The first 400 requests of each trace: few enough to keep, and enough to show a change of the model.
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
        let rms = checked(name, trace).all().unwrap().rms;
        assert!(
            (rms - expected).abs() < 5e-5,
            "{name}: {rms:.4} ms, was {expected} ms"
        );
    }
}

/// The only trace with information about the drive's buffer. The model has all its hits, and one more: a read that starts with
/// the last block that was read ahead.
#[test]
fn hits_of_the_c2247a_are_hits_of_the_model() {
    let trace = parse_trace(include_str!("traces/hp-c2247a.trace")).unwrap();
    let definition = catalogue::find("hp-c2247a").unwrap().unwrap();
    let mut model = build(&definition, 0).unwrap();
    let replayed = iolab_diskmodel::drive_comparison::replay(&mut *model, 512, &trace);
    let count = |buffer: &str, served: ServedFrom| {
        trace
            .iter()
            .zip(&replayed)
            .filter(|(t, r)| t.buffer == buffer && r.served == served)
            .count()
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

#[test]
fn the_distance_of_two_distributions_is_that_of_their_quantiles() {
    let a: Vec<f64> = (0..101).map(f64::from).collect();
    let shifted: Vec<f64> = a.iter().map(|x| x + 2.0).collect();
    assert!((distance(&a, &shifted) - 2.0).abs() < 1e-9);
    // One side twice as wide: the distance at p is 100 p, and its root mean square 100 / sqrt(3).
    let wider: Vec<f64> = a.iter().map(|x| x * 2.0).collect();
    assert!((distance(&a, &wider) - 100.0 / 3f64.sqrt()).abs() < 0.01);
    assert_eq!(distance(&a, &a), 0.0);
}

#[test]
fn requests_outside_the_model_are_counted() {
    let trace = parse_trace("R Hit 0 8 5000 1000\nR Hit 999999999 8 5000 1000").unwrap();
    let found = check(&catalogue::find("hp-97560").unwrap().unwrap(), &trace).unwrap();
    assert_eq!((found.outside, found.all().unwrap().requests), (1, 1));
}

#[test]
fn a_trace_that_is_none_is_refused_by_line() {
    assert_eq!(
        parse_trace("R Hit 5 1 10.0 20.0\nX Hit 5 1 10 20").unwrap_err(),
        "line 2: not a request: X Hit 5 1 10 20"
    );
    assert!(parse_trace("\n").is_err());
}
