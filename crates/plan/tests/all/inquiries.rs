//! Suspects of a difference, and the experiment that tries them.

use std::time::Duration;

use iolab_plan::cells::{OneProcess, Plan, PlannedCell, cells};
use iolab_plan::experiment::{BUILTIN, Experiment, Inquiry, Phenomenon, Untried};
use iolab_plan::precondition::Precondition;
use iolab_plan::suspect::{
    Compared, Intervention, Leftover, MachineState, Sides, Sign, Signs, Suspect,
};
use iolab_plan::untried_suspect::Obstacle;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::CacheState;
use iolab_workload::units::{parse_duration, parse_size};

/// Settings of the base, what the other side has besides, and facts.
type Case = (&'static str, &'static str, &'static str);

/// Which suspects a difference has, and how each is taken away.
const SUSPECTS: [Case; 25] = [
    ("", "pattern=rand", "model"),
    ("", "read_percent=0 sync=each", "model"),
    ("", "read_percent=0", "model"),
    ("", "read_percent=0", ""),
    ("bs=128k", "threads=8", "model"),
    ("", "bs=4M", "model"),
    // A region that hardly shrinks says nothing about its size.
    ("region=2M", "pattern=rand", "model"),
    ("region=1M", "pattern=rand", "model"),
    // Durable writes add a constant to both sides, on models too.
    ("read_percent=0", "depth=32 backend=libaio", "model"),
    ("read_percent=0", "bs=64k", ""),
    ("read_percent=0", "sync=each", "model"),
    // Reverse order takes away read-ahead of the kernel too: the drive's read-ahead is tried after it.
    ("cache=cold", "pattern=rand", "model"),
    // Advice on a file does not reach the pages that faults of a mapping bring in.
    ("cache=cold backend=mmap", "pattern=rand", ""),
    ("cache=cold backend=mmap", "pattern=rand", "change-system"),
    // Waiting for other requests or for storage can make some requests slow; causes common to all requests cannot.
    ("", "", "model quantiles"),
    ("backend=libaio depth=8 pattern=rand", "", "model quantiles"),
    ("read_percent=0 sync=odsync", "", "model quantiles"),
    // Two sizes on a device whose requests are split at the lower one.
    ("bs=64k", "bs=68k", "request-max=64k"),
    ("bs=64k", "bs=68k", "request-max=64k change-system"),
    ("bs=64k", "bs=68k", "request-max=1M change-system"),
    ("bs=64k", "bs=68k", "cpu-wait=0.3"),
    ("bs=64k", "bs=68k", "cpu-wait=0.3 nice realtime"),
    (
        "bs=64k",
        "bs=68k",
        "cpu-wait=0.3 nice realtime change-system",
    ),
    ("bs=64k", "bs=68k", "cpu-wait=0.3 nice change-system"),
    // Real-time threads would keep the kernel's polling thread from the CPU.
    (
        "bs=64k",
        "bs=68k backend=io_uring sqpoll=true",
        "cpu-wait=0.3 nice realtime change-system",
    ),
];

/// Which of them are tried in the budget, and how long.
const TRIED: [Case; 36] = [
    ("time=300ms", "pattern=rand", "model"),
    ("time=300ms", "pattern=rand", "model only=waiting,reach"),
    ("time=300ms", "pattern=rand", "model lasting budget=60s"),
    // By the run that shows the difference, the drive's share takes longer in random order, or does not.
    ("time=300ms", "pattern=rand", "model device=worse"),
    ("time=300ms", "pattern=rand", "model device=not"),
    // Trials of a minute would leave time for one block in five minutes.
    ("time=60s", "pattern=rand", "model took=60s"),
    ("time=60s", "pattern=rand", "model took=60s budget=20s"),
    (
        "time=60s",
        "pattern=rand",
        "model took=60s budget=20s inside",
    ),
    // A fall to a tenth needs nine times the time of a trial; suspects beyond the budget are left out.
    ("time=300ms", "pattern=rand", "drained=10 budget=700s"),
    ("time=300ms", "pattern=rand", "drained=10 budget=60s"),
    // Huge pages have fewer faults too: they are compared with small pages that have none either.
    (
        "time=300ms cache=hot buffer_init=untouched bs=64k",
        "bs=16M",
        "took=5ms",
    ),
    (
        "time=300ms cache=hot buffer_init=untouched bs=64k",
        "bs=16M",
        "took=5ms only=tlb",
    ),
    // The scratch file is filled within the budget: less is left for trials, and nothing if that takes all of it.
    (
        "bs=64k time=300ms bytes=none", "pattern=rand", "model fill=200s",
    ),
    (
        "bs=64k time=300ms bytes=none", "pattern=rand", "model fill=600s",
    ),
    // Trials that end by their bytes long before their time: their actual time decides, on a modelled disk too.
    (
        "bs=64k bytes=4M time=1s", "pattern=rand", "model took=5ms budget=5s",
    ),
    // Slow requests of a disk with 32 of them in flight: 1000 with one at a time take 160 s, and as they are 5 s.
    (
        "pattern=rand depth=32 backend=libaio time=160s",
        "",
        "model quantiles iops=200 took=160s",
    ),
    (
        "pattern=rand depth=32 backend=libaio time=160s",
        "",
        "model quantiles iops=200 took=160s budget=14400s",
    ),
    // Caches of a trial that take several times its own time to be written out are a part of each block.
    (
        "pattern=rand read_percent=0 bs=4k time=300ms",
        "bs=64k",
        "model",
    ),
    (
        "pattern=rand read_percent=0 bs=4k time=300ms",
        "bs=64k",
        "model write-out=3s",
    ),
    (
        "pattern=rand read_percent=0 bs=4k time=300ms",
        "bs=64k",
        "model write-out=30s",
    ),
    // A short and a long trial of one cell. Few requests in flight and the size of the region would change the speed, and with it
    // whether a load ends before the fall: only suspects that watch bytes explain one.
    (
        "pattern=rand read_percent=0 bytes=16M",
        "bytes=none time=1s",
        "model loads inside took=250ms",
    ),
    (
        "pattern=rand read_percent=0 bs=1M bytes=16M",
        "bytes=none time=1s",
        "model loads inside took=250ms",
    ),
    (
        "pattern=rand read_percent=0 bytes=1M",
        "bytes=none time=1s",
        "model loads inside took=250ms",
    ),
    (
        "pattern=rand bs=1M bytes=16M",
        "bytes=none time=1s",
        "model loads inside took=250ms",
    ),
    // Two cells whose factor is the time of a trial are not loads of a fall.
    (
        "pattern=rand read_percent=0 time=250ms",
        "time=1s",
        "model inside took=250ms",
    ),
    (
        "pattern=rand read_percent=0 bytes=16M",
        "pattern=seq bytes=none time=1s",
        "model inside took=250ms",
    ),
    ("time=300ms", "pattern=rand", "cpu-wait=0.3"),
    ("time=300ms", "pattern=rand", "around=100ms"),
    ("time=300ms", "pattern=rand", "around=10s"),
    ("time=1s", "threads=8", "around=10ms"),
    ("time=1s", "depth=8 backend=libaio", ""),
    ("time=1s cache=cold", "cache=hot", ""),
    ("time=1s", "read_percent=0 sync=each", "write-out=1s"),
    ("time=1s", "bs=64k", "budget=1s"),
    ("time=100ms", "bs=64k", "budget=1s took=100ms"),
    ("time=1s", "bs=64k", "model iops=5 budget=20s"),
];

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

fn phenomenon((base, others, facts): Case) -> Phenomenon {
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
            "fill" => asked.fill = time(),
            "write-out" => asked.write_out = time(),
            _ => panic!("{fact} is unknown"),
        }
    }
    asked
}

/// Two cells whose throughput differs, and whose trials took this time.
fn between([base, other]: [&CellSpec; 2], took: Duration) -> Phenomenon {
    Phenomenon {
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
        fill: Duration::ZERO,
    }
}

#[test]
fn suspects_are_those_with_a_possible_part() {
    let told = SUSPECTS.map(|case| {
        let sides = phenomenon(case).sides;
        let mut told = format!("{case:?}\n");
        for suspect in Suspect::all() {
            if !suspect.explains.contains(&sides.compared) {
                continue;
            }
            let way = match (suspect.take_off)(&sides) {
                Intervention::Irrelevant => continue,
                Intervention::Settings(without) => {
                    let pairs = [(&sides.base, &without.base), (&sides.other, &without.other)];
                    pairs
                        .map(|(with, without)| changed(with, without))
                        .join(" | ")
                }
                obstacle => format!("{obstacle:?}"),
            };
            told += &format!("  {}: {way}\n", suspect.name);
        }
        match sides.is_by_construction() {
            true => told + "  by construction\n",
            false => told,
        }
    });
    insta::assert_snapshot!(told.concat());
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
fn planned(asked: &Phenomenon) -> (Inquiry, Duration) {
    let experiment = Experiment::inquiry(asked).expect("valid");
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
    let told = TRIED.map(|case| {
        let (inquiry, takes) = planned(&phenomenon(case));
        let untried = inquiry
            .untried
            .iter()
            .map(|one| format!("\n  {}: {:?}", one.suspect, one.why));
        format!(
            "{case:?}\n  {:?}, {} variants, {takes:?}, idle {:?}, shorter {:?}{}",
            inquiry.tried,
            inquiry.variants.len(),
            inquiry.idle_ns,
            inquiry.shorter_ns,
            untried.collect::<String>(),
        )
    });
    insta::assert_snapshot!(told.join("\n"));
}

/// Huge pages have fewer faults too: alone their intervention is hidden.
#[test]
fn a_hidden_suspect_is_measured_without_its_cover() {
    let case = (
        "time=300ms cache=hot buffer_init=untouched bs=64k",
        "bs=16M",
        "took=5ms",
    );
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
    let mut experiment = Experiment::inquiry(&phenomenon(TRIED[0])).expect("valid");
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
            fill_ns: 0,
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
