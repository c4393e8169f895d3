//! Plan of a line: its definition, cells, forecast and notes, or why it is refused.

use std::time::Duration;

use iolab_plan::blocks::depends_on_order;
use iolab_plan::cells::{OneProcess, Plan, cells};
use iolab_plan::experiment::{BlockTimes, Design, Experiment};
use iolab_plan::forecast::Forecast;
use iolab_workload::Result;
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::Rate;

use crate::line_files::check;
use crate::lines::{experiment, found, made};

#[test]
fn each_line_is_planned_or_refused() {
    let subjects = [
        "changes", "cells", "combinations", "missing-levels", "groups", "programs", "questions",
        "rates", "soaks", "levels", "order", "forecasts", "budgets-of-writes",
    ];
    for subject in subjects {
        check(&[subject], |line| {
            plan_of(subject, line).unwrap_or_else(|error| error.to_string())
        });
    }
}

/// Consequences of a line, as far as a file on this subject is about it.
fn plan_of(subject: &str, line: &str) -> Result<String> {
    let made = made(line)?;
    let before = found(line.split(' ').next().expect("a name"))?;
    let plan = Plan::of_new_run(made.experiment.clone(), &OneProcess)?;
    let mut told = Vec::new();
    let written = definition(&made.experiment);
    let question = |line: &&String| line.starts_with("question = ");
    if subject == "questions" {
        return Ok(written.iter().find(question).expect("a question").clone());
    }
    let mut follows = news(&written, &definition(&before));
    follows.retain(|own| !own.starts_with('[') && !question(&own) && !is_given(own, line));
    if subject != "forecasts" && !follows.is_empty() {
        told.push(follows.join(", "));
    }
    told.extend(made.notes);
    told.extend(plan.left_out().map(str::to_owned));
    if subject != "forecasts" {
        told.push(told_of_cells(&plan, &before)?);
    }
    let mut checks = plan.cells().iter().map(|cell| cell.spec.check());
    let fault = checks.find_map(Result::err);
    told.extend(fault.map(|error| format!("no cell: {}", error.message())));
    if ["forecasts", "soaks", "budgets-of-writes"].contains(&subject) {
        let forecast = Forecast::of(&plan, &|_| Duration::ZERO);
        let (trials, time) = (forecast.trials, forecast.time);
        let at_most = |bytes| format!("AtMost({bytes})");
        let written = forecast.written.map_or("Unbounded".to_owned(), at_most);
        let writes = format!("{written}, {:?}", forecast.writes());
        let bounded = format!(
            "AtMost({0}), Writes {{ bytes: {0}, is_bounded: true }}",
            forecast.writes().bytes
        );
        let writes = match writes == bounded {
            true => written,
            false => writes,
        };
        told.push(format!(
            "{} to {} trials, {:?} to {:?}, {writes}",
            trials.0, trials.1, time.0, time.1,
        ));
    }
    if ["forecasts", "soaks", "changes"].contains(&subject) {
        let short = plan.shortfall(&|_| Duration::ZERO);
        let short = short
            .as_deref()
            .and_then(|short| short.split(": choose").next());
        told.extend(short.map(str::to_owned));
    }
    let specs = plan.cells().iter().map(|cell| &cell.spec);
    if subject == "order" && depends_on_order(&plan.experiment().design, specs) {
        told.push("depends on the order of its trials".to_owned());
    }
    Ok(told.join("\n"))
}

/// The first cell, and how the last one differs from that of the definition before.
fn told_of_cells(plan: &Plan, before: &Experiment) -> Result<String> {
    let cells = plan.cells();
    let first = cells.first().map(|cell| plan.describe(cell));
    let before = Plan::of_new_run(before.clone(), &OneProcess)?;
    let last = |plan: &Plan| plan.cells().last().map(|cell| settings(&cell.spec));
    let [own, others] = [plan, &before].map(|plan| last(plan).unwrap_or_default());
    let last = news(&own, &others).join(" ");
    let first = first.unwrap_or_default();
    Ok(format!("{} cells: {first} ... {last}", cells.len()))
}

/// Whether a line of a definition has a name, or a number, that the line of the experiment gives.
fn is_given(own: &str, line: &str) -> bool {
    let (name, value) = own.split_once(" = ").expect("a name");
    let name = name.trim_matches('"').rsplit('.').next().expect("a part");
    let mut given = line.split([' ', '.', ',', ';', ':', '\'']);
    match value.parse::<u32>() {
        Ok(_) => given.any(|word| word == format!("{name}={value}")),
        Err(_) => given.any(|word| {
            word.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('='))
        }),
    }
}

/// The lines of the definition, which has the same cells when it is read again.
fn definition(experiment: &Experiment) -> Vec<String> {
    let text = experiment.to_toml().expect("TOML");
    let again = Experiment::from_toml(&text, "again").expect(&text);
    assert_eq!(cells(&again), cells(experiment));
    text.lines().map(str::to_owned).collect()
}

/// The settings of a cell and of its groups that are not the default.
fn settings(cell: &CellSpec) -> Vec<String> {
    let plain = CellSpec::default();
    let changed = |group: &str, cell: &CellSpec| -> Vec<String> {
        let changed = SETTINGS
            .iter()
            .filter(|one| one.get(cell) != one.get(&plain));
        let named = changed.map(|one| format!("{group}{}={}", one.name, one.get(cell)));
        named.collect()
    };
    let groups = cell.groups.iter();
    let groups = groups.flat_map(|group| changed(&format!("{}.", group.name), &group.spec));
    changed("", cell).into_iter().chain(groups).collect()
}

/// Lines that others do not have.
fn news(own: &[String], others: &[String]) -> Vec<String> {
    let new = own.iter().filter(|line| !others.contains(line));
    new.cloned().collect()
}

#[test]
fn an_absurd_grid_is_refused() {
    let many: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    let told = plan_of("cells", &format!("read-stride threads={}", many.join(",")));
    insta::assert_snapshot!(told.expect_err("absurd"));
}

#[test]
fn trials_last_as_long_as_their_level_needs() {
    // Seconds at 50, 100, 300, 500, 1000 and 100,000 requests per second.
    check(&["answers"], |line| {
        let experiment = experiment(line);
        let mut trial = experiment.base().expect(line).trial;
        let times = [50, 100, 300, 500, 1000, 100_000].map(|rate| {
            trial.rate = Some(Rate::Requests(rate));
            let time = experiment.trial_time(&trial).unwrap_or_default();
            time.as_secs_f64().to_string()
        });
        let is_sought = experiment.seek.is_some();
        let least = is_sought.then(|| experiment.least_rate().expect(line));
        format!("{} s, from {least:?}/s", times.join(" "))
    });
}

/// Past work of counted trials besides the load, such as writing out caches, does not change the time of the others.
#[test]
fn counted_trials_take_their_own_time_afterwards() {
    let line = "write-size bs=4k bytes=none time=1s trials_min=99 trials_max=99 budget=30d";
    let plan = Plan::of_new_run(experiment(line), &OneProcess).expect("a plan");
    let rest = Forecast::of(&plan, &|_| Duration::ZERO).after(90, Duration::from_secs(86_400));
    assert_eq!(rest.time.0, Some(Duration::from_secs(10)));
    assert_eq!((rest.trials.1, rest.time.1.as_secs()), (10, 11));
}

/// A session after the end of the budget is granted a block, if its time has a bound.
#[test]
fn blocks_of_other_tools_have_a_time() {
    let line = "read-size bs=4k bytes=1M time=none tool=fio";
    let plan = Plan::of_new_run(experiment(line), &OneProcess).expect("a plan");
    let granted = |overhead| {
        let forecast = Forecast::of(&plan, &|_| Duration::from_secs(overhead));
        forecast.after(0, Duration::MAX).time.1
    };
    assert_eq!(granted(0), Duration::ZERO);
    assert!(granted(2) > Duration::from_secs(2));
}

/// Budgets of 3 s with at least `trials_min` trials, against this many cells whose blocks take these milliseconds: probes, on fast
/// storage, at the longest.
const BUDGETS: [(u32, usize, [u64; 3]); 12] = [
    (6, 9900, [0, 0, 4_950_000]),
    (6, 1, [0, 0, 3_600_000]),
    (6, 2, [0, 0, 1000]),
    (6, 2, [0, 0, 800]),
    (200, 1, [0, 100, 0]),
    // A block that begins within the budget is completed; the one that completes the fewest trials may begin a little later.
    (9, 1, [0, 440, 440]),
    (6, 1, [0, 510, 510]),
    (6, 1, [0, 580, 580]),
    (6, 1, [0, 700, 700]),
    (6, 112, [0, 112_000, 112_000]),
    // Seven blocks of 400 ms fit into the budget, but not together with probes of 1.2 s.
    (6, 1, [0, 400, 400]),
    (6, 1, [1200, 400, 400]),
];

#[test]
fn a_budget_too_small_is_announced_with_needs() {
    let told = BUDGETS.map(|(trials_min, cells, times)| {
        let [probes, least, longest] = times.map(Duration::from_millis);
        let times = BlockTimes {
            probes,
            least,
            longest,
        };
        let design = Design {
            trials_min,
            budget: Duration::from_secs(3),
            ..Design::default()
        };
        let told = design.shortfall(cells, times);
        format!("{cells} cells, {times:?}: {}", told.unwrap_or_default())
    });
    insta::assert_snapshot!(told.join("\n"));
}
