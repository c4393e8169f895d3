//! What a line becomes: its definition, cells, forecast and notes, or why it is refused.

use std::time::Duration;

use iolab_plan::carry_over::{depends_on_order, reads_after_writes};
use iolab_plan::cells::{OneProcess, Plan, cells};
use iolab_plan::experiment::{BlockTimes, Design, Experiment};
use iolab_plan::forecast::Forecast;
use iolab_workload::Result;
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::Rate;

use crate::lines::{experiment, found, made};

/// Lines that are planned or refused, by subject.
const LINES: [(&str, &[&str]); 13] = [
    (
        "changes",
        &[
            "read-size bs=4k,1M numjobs=1,2 then 'bs = 64k' then backend=psync,io_uring precision=0.01 budget=5min",
            "read-size bs",
            "read-size bs=",
            "read-size bs=4k,,8k",
            "read-size bs=4k,4096",
            "read-size bsize=4k",
            "read-size precision=2",
            "read-size budget=1,2",
            "read-size trials_max=99999",
            "read-size trials_max=0",
            "read-size trials_min=1000",
            "read-size trials_min=1000 then trials_max=2",
            "read-size trials_min=50 trials_max=10",
            "read-size trials_max=50 trials_min=10",
            "read-size budget=0.3s idle=0.1s",
            "read-size budget=0.3s idle=1h",
            "latency latency=true",
            "latency latency=false",
            "latency latency=true,false",
            "read-size precondition=steady:round=cells,window=4,rounds=9",
            "read-size precondition=steady:round=cells,window=4,rounds=9 then precondition=none",
        ],
    ),
    (
        "cells",
        &[
            "read-size bs=4k,8k threads=1,2,4",
            "read-size bs=4k,1M,2M,16M buffer_init=touched,huge,nohuge",
            "read-size bs=4k,1M buffer_init=nohuge",
            "read-size bs=4k layout=shared,private descriptors=private,shared",
            "read-size bs=1M,16M region=32M threads=1,4",
            "read-size bs=16M region=32M threads=4",
            "read-size skip=4k",
            "read-size skip=0,4k",
            "read-size bs=4k skip=0",
            "read-size bs=4k skip=4k pattern=strided",
            "read-size bs=4k skip=4k,8k pattern=seq,strided",
            "mine bs=4k,8k threads=1,2 refine=4",
            "mine refine=4",
            "mine threads=1,2 refine=4",
            "mine bs=4k,8k region=1M,2M refine=4",
            "mine bs=4k,8k refine=33",
        ],
    ),
    (
        "combinations",
        &[
            "read-size list:bs=1m,threads=1,pattern=rand;bs=4k,threads=4,pattern=rand;bs=4k,threads=1,pattern=rand;bs=1M,threads=1,pattern=rand",
            "read-size list:bs=1m,threads=1;bs=4k,threads=4;bs=4k,threads=1 tool=iolab,fio",
            "read-size list:bs=1m,threads=1;bs=4k,threads=4;bs=4k,threads=1 tool=iolab,fio then threads=1,2",
            "read-size list:bs=1m,threads=1;bs=4k,threads=4;bs=4k,threads=1 threads=1,2 then bs=64k",
            "read-size list:bs=1m,threads=1;bs=4k,threads=4 refine=2",
            // A sync of reads is none: combinations that differ in nothing else are one.
            "read-size bs=4k list:sync=each,read_percent=0;sync=none,read_percent=100",
            "read-size bs=4k list:sync=each,read_percent=100;sync=none,read_percent=0;sync=none,read_percent=100",
        ],
    ),
    (
        "missing levels",
        &[
            "in-flight without:backend=io_uring=libaio",
            "load-latency without:backend=io_uring=libaio",
            "interference without:backend=io_uring=libaio",
            "write-vs-read without:backend=io_uring=libaio",
            "read-size without:backend=io_uring=libaio",
            "buffer-size without:buffer_init=populated",
            "pts-iops block:512",
            "pts-iops block:4096",
            "limits-seastar block:4096",
            "durable-log block:4096",
        ],
    ),
    (
        "groups",
        &[
            "groups",
            "groups writer.rate=10MB/s reader.threads=1,2,4 time=2s",
            "groups workload=WR",
            "groups verify=true",
            "groups verify=true reader.verify=true",
            "groups active=reader",
            "groups active=writer,reader+writer",
            "groups active=writer,all",
            "groups active=writer",
            "groups reader.rate=0",
            "groups cleaner.bs=4k",
            "groups tool=iolab,fio",
            "groups refine=2",
            "groups writer.bz=4k",
            "groups writer.trials_min=7",
            "groups rate=0",
            "groups reader.active=writer",
            "groups writer.active=reader,writer",
            "read-size reader.bs=4k",
            "interference pattern=seq",
            "interference workload=RS",
            "interference workload=WS,RS",
            "interference reader.read_percent=0,100 then reader.workload=RS",
            "interference reader.workload=RS then reader.pattern=rand",
            "interference reader.workload=RS then reader.workload=none then reader.pattern=rand",
            // The order of ranges stays, but not that of an offset which is no number of regions.
            "interference region=8M",
            "interference region=8M writer.offset=1G then region=16M",
            "interference region=16M writer.offset=20M then region=4M",
        ],
    ),
    (
        "programs",
        &[
            "linkage 'command=./a {file},./b \"x,y\" {file}'",
            "linkage 'command=./a {file},./b {file}' then 'command=cat {file}' then linkage=static",
            "linkage threads=4",
            "linkage depth=1,2",
            "linkage backend=psync",
            "linkage read_percent=50",
            "linkage sync=end",
            "linkage linkage=none,static",
            "linkage 'command=none,cat {file}'",
            "read-size 'command=cat {file}'",
        ],
    ),
    (
        "questions",
        &[
            "write-random bs=4k,64k region=64M time=1s",
            "write-random bs=4k tool=iolab,fio",
            "write-random bs=4k,64k read_percent=70 sync=none",
            "read-size bs=4k threads=1,2,4",
            "read-size bs=4k",
            "write-size bs=4k sync=none,each",
            "interference writer.rate=0,none reader.rate=100 region=64M",
            // A group named writer that reads writes nothing.
            "interference writer.read_percent=100",
            "interference writer.pattern=rand",
            "interference read_percent=0",
            "interference writer.bs=4k,1M",
            "interference writer.rate=none",
            "interference writer.pattern=seq,rand",
        ],
    ),
    (
        "rates",
        &[
            "read-random bs=4k rate=300 seek:p99<1ms",
            "read-random bs=4k threads=1,2 seek:p99<1ms",
            "read-random bs=4k tool=iolab,fio seek:p99<1ms",
            "read-random bs=4k tool=fio seek:p99<1ms",
            "read-random bs=4k seek:iops>500",
        ],
    ),
    (
        "soaks",
        &[
            "write-size bs=4k,64k soak:1h",
            "write-size bs=4k trials_min=3 latency=false budget=1min soak:1h",
            "write-size bs=4k rate=100 soak:1h",
            "write-size bytes=1G soak:1h",
            "write-size sync=each allocate=append soak:1h",
            "write-size tool=fio soak:1h",
            "write-size soak:100h",
        ],
    ),
    (
        "levels",
        &[
            "load-latency answer:syncs.p99<1ms",
            "load-latency answer:writes.p99<1ms",
            "load-latency read_percent=0 answer:reads.p99<1ms",
            "load-latency read_percent=0 answer:syncs.p99<1ms",
            "load-latency read_percent=0 sync=end answer:syncs.max<100ms",
            "load-latency answer:p99<10s",
            "load-latency rate=100 answer:syncs.p99<1ms",
            "load-latency rate=100 answer:p99<10s",
            "disk-grid rate=500 time=1s answer:writes.p99<5ms",
            "disk-grid rate=500 workload=RS,RR answer:writes.p99<5ms",
            // Nothing falls behind in a closed loop.
            "read-random hold:p99<10s",
            "read-random hold:p50<10s rate=100",
        ],
    ),
    (
        "order",
        &[
            "disk-grid bs=4k,64k threads=1 workload=WS,RS,RR",
            "disk-grid bs=4k,64k threads=1 workload=RS,RR",
            "disk-grid bs=4k,64k threads=1 workload=WS,WR",
            "disk-grid bs=4k threads=1 sync=end",
            "write-random bs=64k,1M warmup=none trials_min=1 trials_max=1",
            // Reads use up credits too.
            "read-random bs=64k,1M warmup=none trials_min=1 trials_max=1",
            "write-random bs=64k warmup=none trials_min=1 trials_max=1",
            "write-random bs=64k,1M warmup=none",
        ],
    ),
    (
        "forecasts",
        &[
            // Trials of 300 requests of 1 MiB: a tenth of a second on fast storage, and three seconds at 100 a second, on any.
            "read-random bs=1MiB bytes=300M trials_min=9 trials_max=9 time=10s budget=300s",
            "read-random bs=1MiB bytes=300M trials_min=9 trials_max=9 time=10s budget=300s rate=100",
            "write-size bs=4k bytes=none time=1s trials_min=99 trials_max=99 budget=30d",
            "write-size bs=4k bytes=none time=1s trials_min=99 trials_max=99 budget=300s",
            "read-size bs=4k,8k time=100ms trials_min=6 trials_max=10",
            "write-size bs=4k,8k bytes=1M trials_max=9",
            "write-size bs=4k,8k bytes=none time=1s budget=100s",
            // A warm-up and 9 trials of 1000 requests, and the first one.
            "write-size bs=4k,8k bytes=none time=1s rate=1000 trials_max=9",
            "write-size bs=4k,8k bytes=none time=1s rate=1000 trials_max=9 arrivals=poisson",
            // The bytes that a group reads are not written.
            "interference writer.rate=none reader.rate=none time=none reader.bytes=100M writer.bytes=1M trials_max=9",
            "interference writer.rate=none reader.rate=none time=none reader.bytes=1M writer.bytes=100M trials_max=9",
            "write-random bs=4k,8k,16k time=none bytes=9223372036854775807",
            "write-random bs=4k,8k,16k time=none rate=1B/s bytes=9223372036854775807",
        ],
    ),
    (
        "budgets of writes",
        &["glance", "glance writes=600MiB", "glance region=4GiB"],
    ),
];

#[test]
fn each_line_is_planned_or_refused() {
    for (subject, lines) in LINES {
        let shown: Vec<String> = lines.iter().map(|line| shown(line)).collect();
        insta::assert_snapshot!(subject.replace(' ', "-"), shown.join("\n"));
    }
}

/// A line with its plan, or with the error.
fn shown(line: &str) -> String {
    let told = plan_of(line).unwrap_or_else(|error| format!("{error}\n"));
    format!("$ {line}\n{told}")
}

fn plan_of(line: &str) -> Result<String> {
    let made = made(line)?;
    let before = found(line.split(' ').next().expect("a name"))?;
    let plan = Plan::of_new_run(made.experiment.clone(), &OneProcess)?;
    let mut told = news(&definition(&made.experiment), &definition(&before));
    told.extend(made.notes);
    told.extend(plan.left_out().map(str::to_owned));
    let labels: Vec<String> = plan
        .cells()
        .iter()
        .map(|cell| plan.describe(cell))
        .collect();
    told.push(format!("cells ({}): {}", labels.len(), ends_of(&labels)));
    let mut checks = plan.cells().iter().map(|cell| cell.spec.check());
    let fault = checks.find_map(Result::err);
    told.extend(fault.map(|error| format!("no cell: {}", error.message())));
    let before = Plan::of_new_run(before, &OneProcess)?;
    let last = |plan: &Plan| plan.cells().last().map(|cell| settings(&cell.spec));
    let [own, others] = [&plan, &before].map(|plan| last(plan).unwrap_or_default());
    told.push(
        format!("last: {}", news(&own, &others).join(" "))
            .trim_end()
            .to_owned(),
    );
    let forecast = Forecast::of(&plan, &|_| Duration::ZERO);
    let (trials, time) = (forecast.trials, forecast.time);
    told.push(format!(
        "{} to {} trials, {:?} to {:?}, {:?}, {:?}",
        trials.0,
        trials.1,
        time.0,
        time.1,
        forecast.written,
        forecast.writes(),
    ));
    told.extend(plan.shortfall(&|_| Duration::ZERO));
    let specs = || plan.cells().iter().map(|cell| &cell.spec);
    if depends_on_order(&plan.experiment().design, specs()) {
        told.push("depends on the order of its trials".to_owned());
    }
    let reads = reads_after_writes(specs(), |_| true).len();
    if reads > 0 {
        told.push(format!("{reads} reads after writes"));
    }
    Ok(told.iter().map(|line| format!("  {line}\n")).collect())
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

/// A list, shortened to both ends.
fn ends_of(names: &[String]) -> String {
    match names {
        [first @ .., last] if first.len() > 9 => format!("{} ... {last}", first[..3].join("; ")),
        _ => names.join("; "),
    }
}

#[test]
fn an_absurd_grid_is_refused() {
    let many: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    let told = plan_of(&format!("read-stride threads={}", many.join(",")));
    insta::assert_snapshot!(told.expect_err("absurd"));
}

/// Lines with levels, and the length of their trials at each of these rates. 50 s suffice for 40 trials of 1.25 s; a queue that grows
/// by 2 % takes a while to reach a bound, and one that grows by 25 % is looked for if the budget does not suffice.
const ANSWERS: [&str; 17] = [
    "load-latency answer:p99<1ms",
    "load-latency answer:p99.9<1ms",
    "load-latency answer:p50<1ms",
    "load-latency answer:max<1ms",
    "load-latency answer:p99<10ms",
    "load-latency answer:p50<10ms",
    "load-latency answer:p50<300ms",
    "load-latency answer:p99<1ms,p50<10ms",
    "load-latency read_percent=50 answer:reads.p99<1ms",
    "load-latency read_percent=50 sync=fdatasync sync_every=2 answer:syncs.p99<1ms",
    "load-latency time=2s answer:p99<1ms",
    "load-latency rate=100,200 answer:p99<1ms",
    "load-latency rate=50 answer:p99<1ms",
    "load-latency rate=50 answer:p99<500ms",
    // Reads are not affected by the bound on writes, and keep the length of the setting.
    "disk-grid rate=500 time=1s workload=WR answer:writes.p99<5ms",
    "disk-grid rate=500 time=1s workload=RS,WR answer:writes.p99<5ms",
    "read-random hold:p50<10s",
];

#[test]
fn trials_last_as_long_as_their_level_needs() {
    let told = ANSWERS.map(|line| {
        let experiment = experiment(line);
        let mut trial = experiment.base().expect(line).trial;
        let times = [50, 100, 300, 500, 1000, 100_000].map(|rate| {
            trial.rate = Some(Rate::Requests(rate));
            let time = experiment.trial_time(&trial).unwrap_or_default();
            format!("{rate}/s: {} s", time.as_secs_f64())
        });
        let is_sought = experiment.seek.is_some();
        let least = is_sought.then(|| experiment.least_rate().expect(line));
        format!("{line}\n  {}; from {least:?}/s", times.join(", "))
    });
    insta::assert_snapshot!(told.join("\n"));
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
        let enough = Design {
            budget: design.enough(times),
            ..design
        };
        assert_eq!(enough.shortfall(cells, times), None, "{times:?}");
        let short = Design {
            budget: enough.budget.mul_f64(0.4),
            ..design
        };
        assert_ne!(short.shortfall(cells, times), None, "{times:?}");
        let told = design.shortfall(cells, times);
        format!("{cells} cells, {times:?}: {}", told.unwrap_or_default())
    });
    insta::assert_snapshot!(told.join("\n"));
}
