//! Suspects of a difference, and the experiment that tries them.

use std::time::Duration;

use iolab_plan::cells::{OneProcess, Plan, PlannedCell, cells};
use iolab_plan::experiment::{BUILTIN, Experiment, Inquiry, Untried};
use iolab_plan::precondition::Precondition;
use iolab_plan::suspect::{
    Compared, Intervention, Leftover, MachineState, Obstacle, Sides, Sign, Signs, Suspect,
};
use iolab_why::inquiry::ToExplain;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::CacheState;
use iolab_workload::units::{parse_duration, parse_size};

use crate::line_files::check;

/// The difference that explanations of built-in experiments begin with.
const USUAL: &str = "time=300ms | pattern=rand | model";

fn cell(sets: &[&str]) -> CellSpec {
    let mut cell = CellSpec::default();
    cell.trial.cache = CacheState::Direct;
    for set in sets.iter().flat_map(|sets| sets.split_whitespace()) {
        let (name, value) = set.split_once('=').expect(set);
        Setting::find(name)
            .expect(set)
            .set(&mut cell, value)
            .expect(set);
    }
    cell
}

/// A difference from a line: settings of the base, what the other side has besides, and facts.
fn phenomenon(line: &str) -> ToExplain {
    let mut parts = line.split('|');
    let [base, others, facts] = [(); 3].map(|()| parts.next().expect(line));
    let mut asked = between(
        [&cell(&[base]), &cell(&[base, others])],
        Duration::from_millis(300),
    );
    let sides = &mut asked.sides;
    for fact in facts.split_whitespace() {
        let (name, value) = fact.split_once('=').unwrap_or((fact, ""));
        let number = || value.parse::<f64>().expect(fact);
        let time = || parse_duration(value).expect(fact);
        match name {
            "model" => sides.is_model = true,
            "loads" => sides.compared = Compared::Loads,
            "quantiles" => sides.compared = Compared::Quantiles,
            "iops" => sides.iops = Some(number()),
            "change-system" => sides.machine.may_change_system = true,
            "nice" => sides.machine.may_raise_nice = true,
            "realtime" => sides.machine.may_be_realtime = true,
            "cpu-wait" => sides.machine.cpu_wait = Some(number()),
            "request-max" => sides.machine.request_max_bytes = parse_size(value).ok(),
            "lasting" => sides.machine.leftover = Leftover::Lasting,
            "drained" => sides.machine.leftover = Leftover::Drained(number()),
            "device" if value == "worse" => sides.signs.stages.device = Sign::OnWorseSide,
            "device" => sides.signs.stages.device = Sign::NotThere,
            "only" => {
                let suspects = value
                    .split(',')
                    .map(|name| Suspect::find(name).expect(name));
                asked.only = suspects.map(|suspect| suspect.name).collect();
            }
            "inside" => asked.changes_inside = true,
            "took" => asked.took = [time(); 2],
            "around" => asked.around = time(),
            "budget" => asked.budget = time(),
            "write-out" => asked.write_out = time(),
            _ => panic!("{fact} is unknown"),
        }
    }
    asked
}

/// Two cells whose throughput differs, and whose trials took this time.
fn between([base, other]: [&CellSpec; 2], took: Duration) -> ToExplain {
    ToExplain {
        text: "throughput of rand 0.1 times the rate of seq".to_owned(),
        seen: 0.1,
        expected: 1.0,
        sides: Sides {
            base: base.clone(),
            other: other.clone(),
            is_model: false,
            compared: Compared::Cells,
            iops: None,
            machine: MachineState::default(),
            signs: Signs::default(),
        },
        only: Vec::new(),
        took: [took; 2],
        response: Response::Throughput,
        precondition: Precondition::default(),
        changes_inside: false,
        around: Duration::ZERO,
        write_out: Duration::ZERO,
        budget: Duration::from_secs(300),
    }
}

#[test]
fn suspects_are_those_with_a_possible_part() {
    check(&["suspects"], |line| {
        let sides = phenomenon(line).sides;
        let is_asked = |suspect: &&Suspect| suspect.explains.contains(&sides.compared);
        let told = Suspect::all()
            .iter()
            .filter(is_asked)
            .filter_map(|suspect| {
                let way = match (suspect.take_off)(&sides) {
                    Intervention::Irrelevant => return None,
                    Intervention::Settings(without) => {
                        let pairs = [(&sides.base, &without.base), (&sides.other, &without.other)];
                        let [base, other] = pairs.map(|(with, without)| changed(with, without));
                        match base == other {
                            true => base,
                            false => format!("{base} | {other}"),
                        }
                    }
                    Intervention::Between(cells) => {
                        let all = cells.iter().map(|cell| changed(&sides.base, cell));
                        all.collect::<Vec<_>>().join(" | ")
                    }
                    obstacle => format!("{obstacle:?}"),
                };
                Some(format!("{}: {way}", suspect.name))
            });
        let mut told: Vec<String> = told.collect();
        if sides.by_construction().is_some() {
            told.push("by construction".to_owned());
        }
        told.join("\n")
    });
}

/// The settings that an intervention changes, which make a valid cell.
fn changed(with: &CellSpec, without: &CellSpec) -> String {
    without.check().expect("a cell");
    let changed = SETTINGS
        .iter()
        .filter(|one| one.get(with) != one.get(without));
    let named = changed.map(|one| format!("{}={}", one.name, one.get(without)));
    named.collect::<Vec<_>>().join(" ")
}

/// The experiment that is planned, with the time of all its trials and of what lies around them. Each side of each variant is
/// a cell of it, and ends like the side that it stands for.
fn planned(asked: &ToExplain) -> (Inquiry, Duration) {
    let experiment = iolab_why::inquiry::experiment(asked).expect("valid");
    let text = experiment.to_toml().expect("TOML");
    assert_eq!(
        Experiment::from_toml(&text, "again").as_ref(),
        Ok(&experiment)
    );
    let inquiry = experiment.inquiry.clone().expect("an inquiry");
    let blocks = experiment.design.trials_min + 1;
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    for variant in &inquiry.variants {
        let pairs = [
            (&variant.base, &asked.sides.base),
            (&variant.other, &asked.sides.other),
        ];
        for (label, side) in pairs {
            let is_named = |cell: &&PlannedCell| plan.describe(cell) == *label;
            let cell = plan.cells().iter().find(is_named).expect(label);
            let limit = cell.spec.trial.limit;
            assert!(limit == side.trial.limit || inquiry.shorter_ns.is_some());
            assert_eq!(
                cell.spec.idle.as_nanos() as u64,
                inquiry.idle_ns.unwrap_or(0)
            );
        }
    }
    let [first, second] = asked.took;
    let of_cell = |cell: &PlannedCell| {
        // A trial that ends by its bytes takes its earlier time.
        let most = cell.spec.trial.time_foreseen().unwrap_or(first.max(second));
        most + cell.spec.idle + asked.around
    };
    let takes = plan.cells().iter().map(of_cell).sum::<Duration>() * blocks;
    (inquiry, takes)
}

#[test]
fn suspects_are_tried_as_the_budget_allows() {
    check(&["inquiries"], |line| {
        let (inquiry, takes) = planned(&phenomenon(line));
        let tried = inquiry.tried.join(", ");
        let mut told = format!("{tried}; {} variants, {takes:?}", inquiry.variants.len());
        let times = [("idle", inquiry.idle_ns), ("shorter", inquiry.shorter_ns)];
        for (name, ns) in times {
            let time = ns.map(|ns| format!(", {name} {:?}", Duration::from_nanos(ns)));
            told.extend(time);
        }
        for alike in inquiry.untried.chunk_by(|one, next| one.why == next.why) {
            let names: Vec<&str> = alike.iter().map(|one| one.suspect.as_str()).collect();
            let why = format!("{:?}", alike[0].why);
            let why = why.replace(", idle_ns: 0", "");
            told += &format!("\n{}: {why}", names.join(", "));
        }
        told
    });
}

/// Huge pages have fewer faults too: alone their intervention is hidden.
#[test]
fn a_hidden_suspect_is_measured_without_its_cover() {
    let case = "time=300ms cache=hot buffer_init=untouched bs=64k | bs=16M | took=5ms";
    let (inquiry, _) = planned(&phenomenon(case));
    let other = |without: &[&str]| {
        let mut variants = inquiry.variants.iter();
        &variants
            .find(|one| one.without == without)
            .expect("a variant")
            .other
    };
    assert_eq!(other(&["tlb"]), other(&[]));
    assert!(other(&["page-faults", "buffer-footprint", "tlb"]).contains("huge"));
    assert!(other(&["page-faults", "buffer-footprint"]).contains("populated"));
}

/// Cells of an experiment that are compared with its first one.
const OTHERS: usize = 8;

/// Cells against the first one of their experiment, with all suspects that a machine can have, and with idle time that drained credits need.
#[test]
fn explanations_of_built_in_experiments_fit_their_budget() {
    let mut experiments = 0;
    for (name, text) in BUILTIN {
        let experiment = Experiment::from_toml(text, name).expect(name);
        let all = cells(&experiment).expect(name);
        let is_plain = |cell: &&PlannedCell| !cell.spec.has_groups() && !cell.spec.runs_program();
        let plain: Vec<&PlannedCell> = all.iter().filter(is_plain).collect();
        let step = plain.len().div_ceil(OTHERS).max(1);
        let mut is_explained = false;
        for other in plain.iter().skip(1).step_by(step) {
            for leftover in [Leftover::Nothing, Leftover::Drained(3.0)] {
                let sides = [&plain[0].spec, &other.spec];
                let took = sides.map(|cell| cell.time_foreseen().unwrap_or(Duration::from_secs(1)));
                let mut asked = between(sides, Duration::ZERO);
                asked.took = took;
                asked.response = experiment.response;
                asked.precondition = experiment.design.precondition;
                asked.sides.machine = MachineState {
                    may_change_system: true,
                    may_raise_nice: true,
                    may_be_realtime: true,
                    cpu_wait: Some(0.5),
                    leftover,
                    ..MachineState::default()
                };
                let (inquiry, takes) = planned(&asked);
                let is_tried = !inquiry.tried.is_empty();
                assert!(
                    !is_tried || takes <= asked.budget.mul_f64(1.2),
                    "{name}: {takes:?}"
                );
                is_explained |= is_tried;
            }
        }
        experiments += usize::from(is_explained);
    }
    assert!(experiments >= 12, "{experiments} of {}", BUILTIN.len());
}

#[test]
fn an_inquiry_from_elsewhere_is_checked() {
    let mut experiment = iolab_why::inquiry::experiment(&phenomenon(USUAL)).expect("valid");
    let inquiry = experiment.inquiry.as_mut().expect("an inquiry");
    inquiry.untried = [
        Obstacle::IsTheDifference,
        Obstacle::KeepsState,
        Obstacle::NeedsChangeSystem,
        Obstacle::NeedsRoot,
        Obstacle::NotAskedFor,
        Obstacle::NoTime {
            budget_s: 120,
            idle_ns: 0,
        },
        Obstacle::Conflict {
            error: "depth above 1 needs an asynchronous backend".to_owned(),
        },
    ]
    .map(|why| Untried {
        suspect: "tlb".to_owned(),
        why,
    })
    .into();
    let text = experiment.to_toml().expect("TOML");
    assert_eq!(Experiment::from_toml(&text, "x"), Ok(experiment));
    let untried = text
        .lines()
        .filter(|line| line.contains("why"))
        .collect::<Vec<_>>()
        .join("\n");
    let told = [
        ("tried = [\"read-ahead\", ", "tried = [\"moon\", "),
        ("keeps-state", "\\u001b[2J"),
    ]
    .map(|(from, to)| {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text);
        Experiment::from_toml(&wrong, "x")
            .expect_err(to)
            .message()
            .to_owned()
    });
    insta::assert_snapshot!(format!("{untried}\n{}", told.join("\n")));
}
