//! Tests.

use proptest::prelude::*;

use super::*;

const PSI: &str = "some avg10=1.53 avg60=0.87 avg300=0.73 total=1080279\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

#[test]
fn stalls_are_read_as_linux_prints_them() {
    assert_eq!(parse_stall(PSI), Some(1_080_279_000));
    assert_eq!(parse_stall("full avg10=0.00 total=7\n"), None);
    assert_eq!(parse_stall("some avg10=0.00 total=x\n"), None);
}

#[test]
fn frequencies_are_those_of_groups_evenly_among_all() {
    let chosen = |names: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let found = policies(folder.path()).into_iter();
        let names = found.map(|path| path.file_name().unwrap().to_owned().into_string().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    // A board with two kinds of cores, in groups of four.
    assert_eq!(chosen(&["policy0", "policy4", "boost"]), "policy4 policy0");
    let many: Vec<String> = (0..24).map(|number| format!("policy{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(
        chosen(&many),
        "policy23 policy20 policy17 policy14 policy11 policy8 policy5 policy2"
    );
    assert_eq!(chosen(&[]), "");
}

#[test]
fn interrupts_are_read_as_linux_prints_them() {
    let stat = "cpu  1 2 3\nintr 130582 0 9 0 5\nctxt 249441\n";
    assert_eq!(parse_interrupts(stat), Some(130_582));
    assert_eq!(parse_interrupts("ctxt 249441\n"), None);
}

#[test]
fn throttling_is_read_as_linux_prints_it() {
    let stat = "usage_usec 5\nuser_usec 3\nnr_throttled 2\nthrottled_usec 1234\n";
    assert_eq!(parse_throttled(stat), Some(1_234_000));
    assert_eq!(parse_throttled("usage_usec 5\nsystem_usec 2\n"), None);
    assert_eq!(parse_throttled("throttled_usec x\n"), None);
    let stat = "nr_periods 9\nnr_throttled 2\nthrottled_time 1234567\n";
    assert_eq!(parse_throttled(stat), Some(1_234_567));
}

#[test]
fn throttled_time_adds_up_over_all_ancestor_groups() {
    let tree = tempfile::tempdir().expect("a folder");
    let own = tree.path().join("cpu/slice/run");
    std::fs::create_dir_all(&own).expect("made");
    let mount = tree.path().join("cpu");
    let mounts = format!(
        "30 24 0:26 / {} rw - cgroup cgroup rw,cpu\n",
        mount.display()
    );
    let found = Hierarchy::parse(mounts.as_bytes());
    let groups = "4:cpu:/slice/run\n7:pids:/slice/run\n";
    assert_eq!(throttled_of(&found, groups), None);
    for (folder, stat) in [
        (&own, "throttled_time 5\n"),
        (&mount.join("slice"), "throttled_time 70\n"),
    ] {
        std::fs::write(folder.join("cpu.stat"), stat).expect("written");
    }
    assert_eq!(throttled_of(&found, groups), Some(75));
    assert_eq!(throttled_of(&found, "7:pids:/slice/run\n"), None);
}

#[test]
fn waiting_is_not_known_of_a_few_ticks() {
    // The kernel has 100 to 1000 ticks a second.
    let tick = tick();
    assert!(
        (Duration::from_millis(1)..=Duration::from_millis(10)).contains(&tick),
        "{tick:?}"
    );
    let counted = Pressure {
        cpu_stall_ns: Some(1),
        io_stall_ns: Some(2),
        memory_stall_ns: Some(3),
        steal_ns: Some(4),
        ..Pressure::default()
    };
    assert_eq!(known_after(tick * TICKS_MIN, counted), counted);
    let steal_only = Pressure {
        steal_ns: Some(4),
        ..Pressure::default()
    };
    let short = tick * TICKS_MIN - Duration::from_nanos(1);
    assert_eq!(known_after(short, counted), steal_only);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", total: u64) {
        let _ = (parse_stall(&text), parse_throttled(&text));
        let _ = parse_stall(&format!("some total={total}"));
    }
}
