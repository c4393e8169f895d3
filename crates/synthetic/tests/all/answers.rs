//! Grades of claims about the questions of single experiments, on runs with known truth: programs, untouched
//! buffers, limits shared by groups, fixed costs, ways of issuing requests, recommended settings. `claims.rs`
//! explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysis::analyse;
use iolab_analysis::bends::fixed_cost;
use iolab_analysis::claim::{
    CellId, Claim, Contrast, Difference, MARGIN, Standing, choices, claims, kind,
};
use iolab_analysis::curve::by_size;
use iolab_record::RunRecord;
use iolab_synthetic::{At, Curve, Disturbance, Disturber, Noise, Outcome, Scenario, Truth};
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::BufferInit;

use super::claims::{
    SAID_MIN, TRIALS, all_runs, bests, hold, hold_made, hold_runs, judged, of_best, outcome, place,
    runs, runs_beside, shapes,
};

type Made = (RunRecord, Truth);

fn level(truth: &Truth, id: CellId) -> f64 {
    truth.cells[place(id, truth)].mb_s
}

/// The run as one of whole programs, which take 1 s at 1 MB/s.
fn of_programs((mut record, truth): Made) -> Made {
    for sample in &mut record.samples {
        sample.elapsed_ns = (1e9 / sample.throughput_mb_s()) as u64;
        sample.all_active_ns = sample.elapsed_ns;
    }
    (record, truth)
}

/// Whether all statements on two programs are true: a difference at a size, and the size from which on they are
/// equivalent.
fn programs((record, truth): Made) -> Outcome {
    let analysis = analyse(&record);
    let time = |bytes: u64, linkage: &str| {
        let mut cells = truth.cells.iter();
        let is = |level: &String| level == linkage;
        let cell =
            cells.find(|one| one.cell.trial().region == bytes && one.cell.levels.iter().any(is));
        1.0 / cell.expect("a cell").mb_s
    };
    let ratio = |bytes: u64| time(bytes, "dynamic") / time(bytes, "static");
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|claim| {
        let points = &claim.points;
        match claim.kind.name {
            // The sentence has the ends.
            "programs-differ" => {
                let ends = [points.first(), points.last()].into_iter().flatten();
                Outcome::of_all(ends.map(|one| {
                    let is_longer = one.ratio.is_some_and(|ratio| ratio.ratio > 1.0);
                    let difference = match (one.standing, is_longer) {
                        (Standing::Differs, true) => Difference::Higher,
                        (Standing::Differs, false) => Difference::Lower,
                        (Standing::NotFound, _) => Difference::NotFound,
                        _ => Difference::CannotTell,
                    };
                    judged(difference, ratio(one.size.expect("a size")))
                }))
            }
            "programs-equivalent" => match claim.of(Standing::From).next() {
                None => Outcome::NotClaimed,
                Some(from) => {
                    let sizes = truth.cells.iter().map(|one| one.cell.trial().region);
                    let mut above = sizes.filter(|size| *size as f64 >= from.value);
                    let within = points[0].value.ln_1p() + 1e-9;
                    outcome(above.all(|size| ratio(size).ln().abs() <= within))
                }
            },
            _ => Outcome::NotClaimed,
        }
    }))
}

fn linkage(noise: Noise, trials: u32, effects: &[(&str, f64)]) -> Scenario {
    Scenario {
        effects: effects
            .iter()
            .map(|(at, ratio)| (At::levels(at), *ratio))
            .collect(),
        ..Scenario::of("linkage", &["region=4k,64k,1M,16M"]).drifting(noise, trials)
    }
}

#[test]
fn programs_are_called_different_or_equal_only_correctly() {
    // 4 % is within the wider margin and outside the narrower one.
    let near = [("linkage=dynamic", 0.96)];
    let apart = [
        ("region=4KiB,linkage=dynamic", 0.5),
        ("region=64KiB,linkage=dynamic", 0.7),
    ];
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let kinds: [(&'static str, &[(&str, f64)]); 3] = [
                ("programs, none", &[]),
                ("programs, 4 %", &near),
                ("programs", &apart),
            ];
            for (claim, effects) in kinds {
                let scenario = linkage(noise, trials, effects);
                let name = format!("{name}, n = {trials}");
                let run = scenario.runs();
                let make = |seed| of_programs(run(seed));
                let score = hold_made((claim, &name), runs(), make, programs);
                if claim == "programs" && name.starts_with("lognormal 3 %") {
                    assert!(score.is_true_at_least(SAID_MIN), "{score}");
                }
            }
        }
    }
}

/// A program that others keep from the CPUs is not called slower, and a slower one is not called equal.
#[test]
fn programs_beside_others_are_not_judged() {
    let disturbed = |at: &str| {
        vec![Disturbance::of_every_trial(
            Disturber::Cpu,
            At::levels(at),
            0.65,
        )]
    };
    let slow = Scenario {
        disturbances: disturbed("linkage=dynamic"),
        ..linkage(Noise::Lognormal { sigma: 0.03 }, 16, &[])
    };
    let alike = Scenario {
        disturbances: disturbed("linkage=static"),
        ..linkage(
            Noise::Lognormal { sigma: 0.01 },
            16,
            &[("linkage=dynamic", 0.65)],
        )
    };
    for (name, scenario) in [
        ("Cpu, one looks slower", slow),
        ("Cpu, both look alike", alike),
    ] {
        let run = scenario.runs();
        let make = |seed| of_programs(run(seed));
        hold_made(
            ("programs, disturbed", name),
            runs_beside(1),
            make,
            programs,
        );
    }
}

/// Whether untouched buffers are called slower only correctly.
fn preparation((mut record, truth): Made) -> Outcome {
    for sample in &mut record.samples {
        let mut cells = truth.cells.iter();
        let of_sample = cells.find(|one| one.cell.id == sample.cell);
        let init = of_sample.expect("a cell").cell.spec.trial.buffer_init;
        sample.counters.usage.minor_faults = match init {
            BufferInit::Untouched => 4096,
            _ => 0,
        };
    }
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    let told = all.iter().filter(|claim| claim.kind == &kind::FAULT_COST);
    Outcome::of_all(told.map(|claim| {
        let of = |init: &str| {
            let mut cells = truth.cells.iter();
            let cell = cells.find(|one| {
                let is = |level: &str| one.cell.levels.iter().any(|own| own == level);
                is(init) && claim.held.iter().all(|(_, level)| is(level))
            });
            cell.expect("a cell").mb_s
        };
        outcome(of("untouched") < of("zeroed"))
    }))
}

#[test]
fn untouched_buffers_are_called_slower_only_correctly() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let none = Scenario::of(
                "buffer-size",
                &["buffer_init=untouched,zeroed", "bs=4k,64k,1M,4M"],
            )
            .drifting(noise, trials);
            hold("untouched buffers, none", &none, name, preparation);
            let slower = Scenario {
                effects: vec![(At::levels("buffer_init=untouched"), 0.5)],
                ..none
            };
            let score = hold(
                "untouched buffers",
                &slower,
                &format!("{name}, ratio 0.5"),
                preparation,
            );
            if name == "lognormal 3 %" {
                assert!(score.is_true_at_least(SAID_MIN), "{score}");
            }
        }
    }
    let disturbed = Scenario {
        disturbances: vec![Disturbance::of_every_trial(
            Disturber::Cpu,
            At::levels("buffer_init=untouched"),
            0.65,
        )],
        ..Scenario::of(
            "buffer-size",
            &["buffer_init=untouched,zeroed", "bs=4k,64k"],
        )
    };
    let kind = "untouched buffers, disturbed";
    hold_runs(kind, &disturbed, "Cpu", all_runs(), preparation);
}

/// Sizes that represent groups: two alone, then both at once, which reach `share` of the sum.
fn groups(noise: Noise, trials: u32, share: f64) -> Scenario {
    Scenario {
        effects: vec![
            (At::levels("bs=8k"), 0.5),
            (At::levels("bs=16k"), 1.5 * share),
        ],
        ..Scenario::of("read-size", &["bs=4k,8k,16k"]).drifting(noise, trials)
    }
}

/// The run as one of two groups `a` and `b`.
fn as_groups((mut record, truth): Made) -> Made {
    record.experiment.factors = vec!["active".to_owned()];
    for (cell, active) in record.cells.iter_mut().zip(["a", "b", "all"]) {
        cell.levels = vec![active.to_owned()];
        let group = |name: &str| GroupSpec {
            name: name.to_owned(),
            spec: CellSpec::default(),
        };
        cell.spec.groups = ["a", "b"].map(group).into();
    }
    (record, truth)
}

fn limits((record, truth): Made) -> Outcome {
    let analysis = analyse(&record);
    let [a, b, all] = [0, 1, 2].map(|cell| truth.cells[cell].mb_s);
    let share = all / (a + b);
    let claimed = claims(&[&analysis]);
    let of_company = claimed.iter().flat_map(|claim| match claim.comparison() {
        Some(one) if one.contrast == Contrast::Company => claim.points.as_slice(),
        _ => &[],
    });
    Outcome::of_all(of_company.map(|effect| match effect.difference() {
        Difference::Lower => outcome(share < 1.0),
        Difference::Equivalent => outcome(share >= 1.0 - MARGIN - 1e-9),
        Difference::Higher => Outcome::False,
        Difference::NotFound | Difference::CannotTell => Outcome::NotClaimed,
    }))
}

#[test]
fn limit_shared_by_groups_is_reported_if_any() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            // Alone, a reaches two thirds of the sum, so its rate is enough at that share.
            for share in [1.0, 2.0 / 3.0, 0.8] {
                let scenario = groups(noise, trials, share);
                let name = format!("{name}, {share:.2} of the sum, n = {trials}");
                let run = scenario.runs();
                let make = |seed| as_groups(run(seed));
                let score = hold_made(("shared limit", &name), runs(), make, limits);
                if name.starts_with("lognormal 3 %") && share < 1.0 {
                    assert!(score.is_true_at_least(SAID_MIN), "{score}");
                }
            }
        }
    }
    let disturbed = Scenario {
        disturbances: vec![Disturbance::of_every_trial(
            Disturber::Traffic,
            At::levels("bs=16k"),
            0.65,
        )],
        ..groups(Noise::Lognormal { sigma: 0.03 }, 16, 1.0)
    };
    let run = disturbed.runs();
    let make = |seed| as_groups(run(seed));
    let kind = ("shared limit, disturbed", "Traffic");
    hold_made(kind, all_runs(), make, limits);
}

/// Whether the time of a request is within the stated error, at every measured size.
fn costs((record, truth): Made) -> Outcome {
    let analysis = analyse(&record);
    let curves = by_size(&analysis, "bs");
    Outcome::of_all(curves.iter().map(|curve| {
        let Some(model) = fixed_cost(&analysis, curve) else {
            return Outcome::NotClaimed;
        };
        outcome(curve.points.iter().all(|point| {
            let id = CellId {
                run: 0,
                cell: point.cell.cell.id,
            };
            let cell = &truth.cells[place(id, &truth)];
            let size = point.size as f64;
            let time = size * 1e3 / cell.median_mb_s().expect("a steady cell");
            let off = (model.t0 + size / model.bandwidth) / time - 1.0;
            off.abs() <= model.relative_error_max + 1e-9
        }))
    }))
}

#[test]
fn time_of_a_request_is_within_the_error() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let amortised = |half: f64| ("bs", Curve::Amortised { half });
            let dip = Curve::Dip {
                at: 65536.0,
                ratio: 0.9,
            };
            for (shape, curves) in [
                ("amortised", vec![amortised(65536.0)]),
                ("dip", vec![amortised(16384.0), ("bs", dip)]),
            ] {
                let sizes = Scenario {
                    curves,
                    noise,
                    trials,
                    ..Scenario::of("read-size", &["bs=4k,8k,16k,32k,64k,128k,256k,512k"])
                };
                hold(
                    "fixed cost and rate",
                    &sizes,
                    &format!("{shape}, {name}"),
                    costs,
                );
            }
        }
    }
}

#[test]
fn the_fastest_way_is_never_ruled_out() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            for ratio in [1.0, 0.7] {
                let four = Scenario {
                    effects: vec![(At::levels("backend=psync"), ratio)],
                    ..Scenario::of("in-flight", &[]).drifting(noise, trials)
                };
                hold(
                    "fastest way",
                    &four,
                    &format!("{name}, ratio {ratio}"),
                    |(record, truth)| {
                        let analysis = analyse(&record);
                        let all = claims(&[&analysis]);
                        Outcome::of_all(all.iter().map(|ways| of_best(ways, &truth)))
                    },
                );
            }
        }
    }
}

/// Whether a setting recommended as nearly as good is that.
fn chosen((record, truth): Made) -> Outcome {
    let analysis = analyse(&record);
    let all = choices(&[&analysis]);
    let of = |claim: &Claim, standing| {
        let mut points = claim.of(standing).filter_map(|point| point.cell);
        points.next().map(|cell| level(&truth, cell))
    };
    Outcome::of_all(all.iter().map(|claim| {
        match of(claim, Standing::Main).zip(of(claim, Standing::Near)) {
            Some((best, simplest)) => outcome(simplest >= (1.0 - MARGIN) * best * (1.0 - 1e-9)),
            None => Outcome::NotClaimed,
        }
    }))
}

fn choice(noise: Noise, trials: u32) -> Scenario {
    Scenario {
        curves: vec![("bs", Curve::Plateau { from: 65536.0 })],
        effects: vec![(At::levels("threads=1"), 0.92)],
        ..Scenario::of(
            "disk-grid",
            &["workload=RS", "bs=4k,64k,1M", "threads=1,4,8"],
        )
        .drifting(noise, trials)
    }
}

#[test]
fn a_simpler_setting_is_nearly_as_good() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            hold("simplest setting", &choice(noise, trials), name, chosen);
        }
    }
}

/// A setting kept from being the best by a disturbance is not called best or near, and settings below it are
/// not either.
#[test]
fn a_disturbed_best_makes_nothing_near() {
    let slowed = |at: &str| {
        vec![Disturbance::of_every_trial(
            Disturber::Traffic,
            At::levels(at),
            0.65,
        )]
    };
    let sizes = Scenario {
        curves: vec![("bs", Curve::Amortised { half: 65536.0 })],
        disturbances: slowed("bs=1M"),
        trials: 16,
        ..Scenario::of("read-size", &["bs=4k,16k,64k,256k,1M"])
    };
    let at_best = "Traffic at the best";
    hold_runs("best size, disturbed", &sizes, at_best, all_runs(), bests);
    let grid = Scenario {
        disturbances: slowed("threads=8"),
        effects: vec![(At::levels("threads=8"), 1.5)],
        ..choice(Noise::Lognormal { sigma: 0.01 }, 16)
    };
    let kind = "simplest setting, disturbed";
    hold_runs(kind, &grid, at_best, all_runs(), chosen);
}
