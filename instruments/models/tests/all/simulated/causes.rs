//! Grades of statements about causes: parts of models are planted as causes, alone and in pairs, and a run without them has
//! to explain their effect.
//!
//! `IOLAB_GRADE_RUNS=40 cargo test --release -p iolab-models --features measure --test all causes -- --nocapture` prints the table of METHODS.md,
//! and with `IOLAB_GRADE_ONLY=TEXT` only rows with this text.

#![allow(clippy::print_stdout, reason = "a grade prints its table")]

mod worlds;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{experiment, measure};
use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::{CellId, Estimate, Point, Quantity, Role, Standing, claims};
use iolab_models::definition::Definition;
use iolab_models::definition::parts::{NoiseDefinition, PartDefinition};
use iolab_plan::experiment::Experiment;
use iolab_record::{Cell, RunRecord};
use iolab_why::inquiry::{self, ToExplain};
use iolab_why::phenomena::phenomena;
use iolab_why::phenomenon::{Phenomenon, PhenomenonKind};
use iolab_workload::response::Response;

use worlds::{World, worlds};

/// Seeds of each world unless `IOLAB_GRADE_RUNS` says otherwise.
const SEEDS: u64 = 1;
/// Worlds that take a third of the time of all, and whose causes others have too: tried where `IOLAB_GRADE_RUNS` is set.
const WHOLE_ONLY: [&str; 6] = [
    "mapping table, overlapping misses",
    "write-back cache, overlapping requests",
    "a serial server",
    "a tail: writes wait for storage that stalls",
    "a tail: noise of writes that a cache makes faster",
    "a tail: noise",
];

/// Statements about a world, counted over its seeds.
#[derive(Default)]
struct Grade {
    runs: usize,
    named: usize,
    planted: usize,
    accused: usize,
    innocent: usize,
    cleared: usize,
    /// Runs in which at least half is called not explained.
    unexplained: usize,
    absent: usize,
    shares: Vec<f64>,
}

fn definition(world: &World, folder: &Path) -> PathBuf {
    let path = folder.join("world.toml");
    let definition = Definition {
        title: world.name.to_owned(),
        source: vec!["made up".to_owned()],
        model: PartDefinition::Noise(Box::new(NoiseDefinition {
            sigma: 0.05,
            drift_sigma: 0.03,
            drift_ms: 1000.0,
            inner: world.model.clone(),
        })),
    };
    let text = toml::to_string(&definition).expect("TOML");
    std::fs::write(&path, text).expect("written");
    path
}

fn of_world(world: &World, seeds: std::ops::Range<u64>) -> Grade {
    let folder = tempfile::tempdir().expect("a folder");
    let model = definition(world, folder.path());
    let model = model.to_str().expect("text");
    let mut grade = Grade::default();
    for seed in seeds {
        let sets = [world.experiment, &["trials_max=12", "budget=20s"]].concat();
        let experiment = experiment("read-size", &sets);
        let shown = measure(model, experiment, seed);
        let inquiry = inquiry::experiment(&asked(world, &shown)).expect("an inquiry");
        let found = measure(model, inquiry, seed + 1000);
        grade.add(world, &analyse(&found));
    }
    grade
}

/// The greatest phenomenon of a run; if there is none, one that is made up of its first cell and its last.
fn asked(world: &World, shown: &RunRecord) -> ToExplain {
    let analysis = analyse(shown);
    let found = phenomena(&analysis).expect("plain trials").first().copied();
    let id = |cell: &Cell| CellId {
        run: 0,
        cell: cell.id,
    };
    let ends = shown.cells.first().zip(shown.cells.last());
    let made_up = |(seen, kind): (f64, PhenomenonKind)| {
        let (base, other) = ends.expect("a cell");
        Phenomenon {
            base: id(base),
            other: id(other),
            seen: Estimate::of(seen, None),
            expected: 1.0,
            size: seen.ln().abs(),
            unclaimed: None,
            kind,
        }
    };
    let Some(one) = world.made_up.map(made_up).or(found) else {
        panic!(
            "{}: nothing is shown: {:?}",
            world.name,
            claims(&[&analysis])
        )
    };
    let second = Duration::from_secs(1);
    let (took, response) = match one.kind {
        PhenomenonKind::Cells => ([second; 2], Response::Throughput),
        PhenomenonKind::Loads(fall) => ([fall.first, fall.whole], Response::Throughput),
        PhenomenonKind::Quantiles(tail) => ([tail.time; 2], Response::P99),
    };
    ToExplain {
        text: world.name.to_owned(),
        seen: one.seen.ratio,
        expected: one.expected,
        sides: one.sides(&analysis).expect("its cells"),
        only: Vec::new(),
        took,
        response,
        precondition: shown_precondition(shown),
        changes_inside: false,
        around: Duration::ZERO,
        write_out: Duration::ZERO,
        budget: Duration::from_secs(600),
    }
}

fn shown_precondition(shown: &RunRecord) -> iolab_plan::precondition::Precondition {
    let definition = Experiment::from_toml(&shown.experiment.toml, "run").expect("its own");
    definition.design.precondition
}

impl Grade {
    fn add(&mut self, world: &World, analysis: &Analysis) {
        self.runs += 1;
        let all = claims(&[analysis]);
        let values = |standing| all.iter().flat_map(move |claim| claim.of(standing));
        self.absent += values(Standing::NotReproduced).count();
        let rest = values(Standing::Unexplained).next();
        self.unexplained += usize::from(rest.is_some_and(|rest| rest.value >= 0.5));
        let together = values(Standing::Together).chain(values(Standing::TogetherReverse));
        let together = together.map(|all| all.value).next();
        for claim in &all[1..] {
            let is_accused = claim.role() == Role::Explanation;
            let single = |point: &&Point| point.suspects.len() == 1;
            for one in claim.points.iter().filter(single) {
                let share = match one.standing {
                    Standing::Joint => together,
                    _ => (one.quantity == Quantity::Share).then_some(one.value),
                };
                match world.planted.contains(&one.suspects[0].as_str()) {
                    true => {
                        self.named += usize::from(is_accused);
                        self.shares.extend(share.map(|share| share.min(1.0)));
                    }
                    false => {
                        self.innocent += 1;
                        self.accused += usize::from(is_accused);
                        self.cleared += usize::from(claim.kind.name == "cleared");
                        if is_accused {
                            println!("{}: accused {:?} {share:?}", world.name, one.suspects);
                        }
                    }
                }
            }
        }
        self.planted += world.planted.len();
    }

    fn median_share(&self) -> Option<f64> {
        iolab_stats::median(&self.shares)
    }
}

/// The grade of each world, in their order. Two threads share them, as other tests run at the same time.
fn grades(worlds: &[World], seeds: u64) -> Vec<Grade> {
    let next = AtomicUsize::new(0);
    let share = || -> Vec<(usize, Grade)> {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let own = places.map_while(|at| Some((at, of_world(worlds.get(at)?, 0..seeds))));
        own.collect()
    };
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(share);
        let mut all = share();
        all.extend(other.join().expect("the other thread does not panic"));
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, grade)| grade).collect()
}

#[test]
fn planted_causes_are_named_and_innocent_ones_not() {
    let seeds = std::env::var("IOLAB_GRADE_RUNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let (mut named, mut planted, mut accused, mut innocent) = (0, 0, 0, 0);
    println!(
        "| planted | runs | named | share, median | innocent suspects | accused | cleared | not explained | not there |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let only = std::env::var("IOLAB_GRADE_ONLY").unwrap_or_default();
    let asked = worlds().into_iter();
    let is_whole = seeds.is_some();
    let asked = asked.filter(|world| is_whole || !WHOLE_ONLY.contains(&world.name));
    let asked: Vec<World> = asked.filter(|world| world.name.contains(&only)).collect();
    assert!(!asked.is_empty(), "no row holds {only}");
    for (world, grade) in asked.iter().zip(grades(&asked, seeds.unwrap_or(SEEDS))) {
        let share = grade.median_share();
        println!(
            "| {} | {} | {} of {} | {} | {} | {} | {} | {} | {} |",
            world.name,
            grade.runs,
            grade.named,
            grade.planted,
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            grade.innocent,
            grade.accused,
            grade.cleared,
            grade.unexplained,
            grade.absent,
        );
        if let (Some(truth), Some(share)) = (world.share, share) {
            assert!((share - truth).abs() <= 0.1, "{}: {share}", world.name);
        }
        if world.planted.is_empty() && world.made_up.is_some() {
            assert!(grade.absent * 100 >= grade.runs * 95, "{}", world.name);
        } else if world.planted.is_empty() {
            assert!(grade.unexplained * 100 >= grade.runs * 90, "{}", world.name);
        }
        named += grade.named;
        planted += grade.planted;
        accused += grade.accused;
        innocent += grade.innocent;
    }
    println!("named {named} of {planted}, accused {accused} of {innocent}");
    assert!(named * 100 >= planted * 90, "{named} of {planted}");
    assert!(accused * 100 <= innocent * 5, "{accused} of {innocent}");
}
