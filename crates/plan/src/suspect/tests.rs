use super::*;
use iolab_workload::trial::{Backend, CacheState, Pattern, SyncPolicy};

fn sides(base: impl Fn(&mut TrialSpec), other: impl Fn(&mut TrialSpec)) -> Sides {
    let of = |change: &dyn Fn(&mut TrialSpec)| {
        let mut cell = CellSpec::default();
        cell.trial.cache = CacheState::Direct;
        change(&mut cell.trial);
        cell
    };
    Sides {
        base: of(&base),
        other: of(&other),
        is_model: true,
        compared: Compared::Cells,
        iops: None,
        machine: MachineState::default(),
        signs: Signs::default(),
    }
}

fn relevant(sides: &Sides) -> Vec<&'static str> {
    let takes = |suspect: &&Suspect| {
        suspect.explains.contains(&sides.compared)
            && matches!((suspect.take_off)(sides), Intervention::Settings(_))
    };
    let all = Suspect::all().iter().filter(takes);
    all.map(|suspect| suspect.name).collect()
}

#[test]
fn suspects_are_those_with_a_possible_part() {
    let random = sides(|_| {}, |trial| trial.pattern = Pattern::Rand);
    assert_eq!(relevant(&random), ["reach", "read-ahead", "waiting"]);
    let durable = sides(
        |_| {},
        |trial| {
            trial.read_percent = 0;
            trial.sync = SyncPolicy::Each;
        },
    );
    assert_eq!(relevant(&durable), ["durability", "read-ahead"]);
    let cached = sides(|_| {}, |trial| trial.read_percent = 0);
    assert_eq!(relevant(&cached), ["read-ahead", "waiting", "write-cache"]);
    let threads = sides(
        |trial| trial.bs = 128 << 10,
        |trial| {
            trial.bs = 128 << 10;
            trial.threads = 8;
        },
    );
    assert_eq!(relevant(&threads), ["bandwidth", "read-ahead"]);
}

/// A region that hardly shrinks says nothing about its size.
#[test]
fn a_region_of_few_requests_is_not_reduced() {
    let of = |region: u64| {
        sides(
            |trial| trial.region = region,
            |trial| {
                trial.region = region;
                trial.pattern = Pattern::Rand;
            },
        )
    };
    let requests = 64 * of(1 << 30).base.trial.bs;
    assert!(relevant(&of(8 * requests)).contains(&"reach"));
    assert!(!relevant(&of(4 * requests)).contains(&"reach"));
}

/// Durable writes add a constant to both sides, on models too.
#[test]
fn two_writing_sides_do_not_suspect_write_caches() {
    let writes = |trial: &mut TrialSpec| trial.read_percent = 0;
    let of = sides(writes, |trial| {
        writes(trial);
        trial.depth = 32;
    });
    assert!(!relevant(&of).contains(&"write-cache"));
}

#[test]
fn a_compared_setting_is_not_a_suspect() {
    let direction = sides(
        |trial| {
            trial.read_percent = 0;
        },
        |trial| {
            trial.read_percent = 0;
            trial.sync = SyncPolicy::Each;
        },
    );
    assert!(!relevant(&direction).contains(&"durability"));
    assert!(direction.is_by_construction());
    let order = sides(|_| {}, |trial| trial.pattern = Pattern::Rand);
    assert!(!order.is_by_construction());
}

#[test]
fn an_intervention_is_a_valid_cell() {
    let sizes = sides(|_| {}, |trial| trial.bs = 4 << 20);
    for suspect in Suspect::all() {
        if let Intervention::Settings(without) = (suspect.take_off)(&sizes) {
            for side in [&without.base, &without.other] {
                side.check().expect(suspect.name);
            }
        }
    }
    let asynchronous = (Suspect::find("waiting").expect("there").take_off)(&sizes);
    let Intervention::Settings(without) = asynchronous else {
        panic!("{asynchronous:?}");
    };
    assert_eq!(without.base.trial.backend, Backend::Libaio);
}

/// A wait for storage that is added to both sides makes any two writes more alike.
#[test]
fn writes_against_reads_suspect_write_caches() {
    let mut direction = sides(|_| {}, |trial| trial.read_percent = 0);
    direction.is_model = false;
    assert!(relevant(&direction).contains(&"write-cache"));
    let write = |trial: &mut TrialSpec| trial.read_percent = 0;
    let mut sizes = sides(write, |trial| {
        trial.read_percent = 0;
        trial.bs = 64 << 10;
    });
    sizes.is_model = false;
    assert!(!relevant(&sizes).contains(&"write-cache"));
}

/// Reverse order takes away read-ahead of the kernel too: the drive's read-ahead is tried after it.
#[test]
fn read_ahead_of_the_drive_follows_the_kernels() {
    let cold = |trial: &mut TrialSpec| trial.cache = CacheState::Cold;
    let order = sides(cold, |trial| {
        trial.cache = CacheState::Cold;
        trial.pattern = Pattern::Rand;
    });
    let found = (Suspect::find("read-ahead").expect("there").take_off)(&order);
    assert_eq!(found, Intervention::After("host-read-ahead"));
}

/// Waiting for other requests or for storage can make some requests slow; causes common to all requests cannot.
#[test]
fn slow_requests_have_suspects_of_their_own() {
    let of = |change: &dyn Fn(&mut TrialSpec)| {
        let mut tail = sides(change, change);
        tail.compared = Compared::Quantiles;
        relevant(&tail)
    };
    assert_eq!(of(&|_| {}), [""; 0]);
    let random = |trial: &mut TrialSpec| {
        trial.backend = Backend::Libaio;
        trial.depth = 8;
        trial.pattern = Pattern::Rand;
    };
    assert_eq!(of(&random), ["queueing", "reach"]);
    let durable = |trial: &mut TrialSpec| {
        trial.read_percent = 0;
        trial.sync = SyncPolicy::Odsync;
    };
    assert_eq!(of(&durable), ["durability"]);
}

/// Two sizes on a device whose requests are split at the lower one.
fn split() -> Sides {
    let mut sizes = sides(|trial| trial.bs = 64 << 10, |trial| trial.bs = 68 << 10);
    sizes.is_model = false;
    sizes.machine.request_max_bytes = Some(64 << 10);
    sizes
}

fn of(name: &str, sides: &Sides) -> Intervention {
    (Suspect::find(name).expect("there").take_off)(sides)
}

#[test]
fn kernel_settings_are_changed_with_consent_only() {
    let mut sizes = split();
    let lacks = Intervention::Lacks(Obstacle::NeedsChangeSystem);
    assert_eq!(of("request-limit", &sizes), lacks);
    sizes.machine.may_change_system = true;
    let Intervention::Settings(without) = of("request-limit", &sizes) else {
        panic!("it may be changed");
    };
    assert_eq!(without.other.system.to_string(), "max_sectors_kb:max");
    sizes.machine.request_max_bytes = Some(1 << 20);
    assert_eq!(of("request-limit", &sizes), Intervention::Irrelevant);
}

/// Advice on a file does not reach the pages that faults of a mapping bring in.
#[test]
fn mapped_read_ahead_is_its_own_suspect() {
    let mapped = |trial: &mut TrialSpec| {
        trial.cache = CacheState::Cold;
        trial.backend = Backend::Mmap;
    };
    let mut order = sides(mapped, |trial| {
        mapped(trial);
        trial.pattern = Pattern::Rand;
    });
    order.is_model = false;
    assert_eq!(of("host-read-ahead", &order), Intervention::Irrelevant);
    assert_eq!(
        of("read-ahead", &order),
        Intervention::After("mapped-read-ahead")
    );
    order.machine.may_change_system = true;
    let Intervention::Settings(without) = of("mapped-read-ahead", &order) else {
        panic!("it may be changed");
    };
    assert!(matches!(
        of("read-ahead", &without),
        Intervention::Settings(_)
    ));
}

#[test]
fn a_priority_is_raised_if_needed_and_allowed() {
    let mut sizes = split();
    assert_eq!(of("cpu-waiting", &sizes), Intervention::Irrelevant);
    sizes.machine.cpu_wait = Some(0.3);
    let lacks = Intervention::Lacks(Obstacle::NeedsRoot);
    assert_eq!(of("cpu-waiting", &sizes), lacks);
    sizes.machine.may_raise_nice = true;
    let priorities = |sizes: &Sides| match of("cpu-waiting", sizes) {
        Intervention::Settings(sides) => (sides.base.trial.nice, sides.base.trial.realtime),
        other => panic!("{other:?}"),
    };
    assert_eq!(priorities(&sizes), (Some(-20), None));
    // Real-time threads can keep all else from a CPU.
    sizes.machine.may_be_realtime = true;
    assert_eq!(priorities(&sizes), (Some(-20), None));
    sizes.machine.may_change_system = true;
    assert_eq!(priorities(&sizes), (None, Some(50)));
    // A control group may have none of them.
    sizes.machine.may_be_realtime = false;
    assert_eq!(priorities(&sizes), (Some(-20), None));
    sizes.machine.may_be_realtime = true;
    // Real-time threads would keep the kernel's polling thread from the CPU.
    sizes.other.trial.sqpoll = true;
    assert_eq!(priorities(&sizes), (Some(-20), None));
}
