use std::collections::BTreeSet;

use super::setting::OR_NONE;
use super::*;
use crate::trial::TrialSpec;

/// For each setting, a value as users write it, and its canonical form.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("backend", "io_uring", "io_uring"),
    ("pattern", "zipf:1.20", "zipf:1.2"),
    ("bs", "4k", "4KiB"),
    ("bs_mix", "4k:60,64k:30,1M:10", "4KiB:60,64KiB:30,1MiB:10"),
    ("skip", "1024k", "1MiB"),
    ("offset", "0", "0"),
    ("region", "1G", "1GiB"),
    ("threads", " 8 ", "8"),
    ("cpus", "0,1,2,3,8", "0-3,8"),
    ("placement", "spread", "spread"),
    ("depth", "32", "32"),
    ("batch", "auto", "auto"),
    ("read_percent", "70%", "70"),
    ("trim_percent", "30%", "30"),
    // Pattern and direction of the default, so that no other setting changes.
    ("workload", "rs", "RS"),
    ("layout", "private", "private"),
    ("files", "8/random:1/open=8", "8/random/open=8"),
    ("descriptors", "shared", "shared"),
    ("sync", "fsync", "each"),
    ("sync_every", "8", "8"),
    ("allocate", "append", "append"),
    ("cache", "hot", "hot"),
    ("first_offset", "random", "random"),
    ("buffer_init", "zeroed", "zeroed"),
    ("buffer_memory", "contiguous", "contiguous"),
    ("compressible", "50%", "50"),
    ("verify", "on", "true"),
    ("bytes", "1048576", "1MiB"),
    ("time", "0.25", "250ms"),
    ("rate", "5000", "5000"),
    ("arrivals", "poisson", "poisson"),
    ("rate_slack", "50us", "50us"),
    ("thinktime", "0.001", "1ms"),
    ("latency", "off", "false"),
    ("hardware_counters", "yes", "true"),
    ("sqpoll", "true", "true"),
    ("iopoll", "yes", "true"),
    ("fadvise", "random", "random"),
    ("active", "reader + writer", "reader+writer"),
    ("linkage", "static", "static"),
    ("command", " cat  {file} ", "cat  {file}"),
    ("tool", "fio", "fio"),
    ("target", " /mnt/a ", "/mnt/a "),
    ("ranks", "4", "4"),
    ("hosts", "2", "2"),
    ("shift", "rank", "rank"),
    ("idle", "10s", "10s"),
    ("nice", "+5", "5"),
    ("realtime", "050", "50"),
    ("system", "scheduler:none", "scheduler:none"),
    ("latency_over_time", "on", "true"),
    ("trace", "yes", "true"),
];

#[test]
fn every_setting_sets_its_value() {
    for setting in SETTINGS {
        let of_setting = EXAMPLES.iter().find(|(name, ..)| *name == setting.name);
        let Some((name, text, canonical)) = of_setting else {
            panic!("{} has no row in EXAMPLES", setting.name);
        };
        let mut cell = CellSpec::default();
        setting.set(&mut cell, text).unwrap();
        assert_eq!(setting.get(&cell), *canonical, "{name}");
        assert_eq!(setting.canonical(canonical).unwrap(), *canonical, "{name}");
        for other in SETTINGS.iter().filter(|other| other.name != *name) {
            let untouched = other.get(&CellSpec::default());
            assert_eq!(other.get(&cell), untouched, "{name} changed {}", other.name);
        }
    }
    assert_eq!(EXAMPLES.len(), SETTINGS.len());
}

/// The settings of a type whose fields these are: a field that has no line here does not compile.
macro_rules! settings_of {
    ($type:ident { $($field:ident: $settings:expr,)+ }) => {{
        // Names a field without a line.
        let _ = |of: $type| $type { $($field: of.$field,)+ };
        [$(&$settings[..]),+].concat()
    }};
}

#[test]
fn every_field_of_a_cell_is_a_setting() {
    const NONE: [&str; 0] = [];
    let of_trial = settings_of!(TrialSpec {
        backend: ["backend"],
        pattern: ["pattern"],
        bs: ["bs"],
        bs_mix: ["bs_mix"],
        skip: ["skip"],
        offset: ["offset"],
        region: ["region"],
        threads: ["threads"],
        // Workers of other ranks, set by the run.
        others: NONE,
        ranks: ["ranks"],
        hosts: ["hosts"],
        shift: ["shift"],
        cpus: ["cpus"],
        placement: ["placement"],
        depth: ["depth"],
        batch: ["batch"],
        read_percent: ["read_percent"],
        trim_percent: ["trim_percent"],
        layout: ["layout"],
        files: ["files"],
        descriptors: ["descriptors"],
        sync: ["sync"],
        sync_every: ["sync_every"],
        allocate: ["allocate"],
        cache: ["cache"],
        first_offset: ["first_offset"],
        buffer_init: ["buffer_init"],
        buffer_memory: ["buffer_memory"],
        compressible: ["compressible"],
        verify: ["verify"],
        limit: ["bytes", "time"],
        rate: ["rate"],
        arrivals: ["arrivals"],
        rate_slack: ["rate_slack"],
        thinktime: ["thinktime"],
        latency: ["latency"],
        latency_over_time: ["latency_over_time"],
        hardware_counters: ["hardware_counters"],
        // One seed for each trial, derived from the seed of the run.
        seed: NONE,
        sqpoll: ["sqpoll"],
        iopoll: ["iopoll"],
        // As fine as the readers of the series ask for.
        series_ns: NONE,
        fadvise: ["fadvise"],
        nice: ["nice"],
        realtime: ["realtime"],
        trace: ["trace"],
    });
    let of_cell = settings_of!(CellSpec {
        trial: of_trial,
        // Each has settings of its own.
        groups: NONE,
        active: ["active"],
        workload: ["workload"],
        // A value of `batch`.
        batch_auto: NONE,
        linkage: ["linkage"],
        command: ["command"],
        tool: ["tool"],
        target: ["target"],
        system: ["system"],
        idle: ["idle"],
        // Names of other settings whose values are unknown.
        unknown: NONE,
    });
    let fields = BTreeSet::from_iter(of_cell);
    let rows = SETTINGS.iter().map(|setting| setting.name).collect();
    assert_eq!(fields, rows);
}

#[test]
fn defaults_can_be_written_and_read() {
    for setting in SETTINGS {
        let default = setting.get(&CellSpec::default());
        assert_eq!(setting.canonical(&default).unwrap(), default);
    }
}

#[test]
fn fio_names_are_known() {
    for (alias, name) in [
        ("numjobs", "threads"),
        ("iodepth", "depth"),
        ("rwmixread", "read_percent"),
        ("ioengine", "backend"),
        ("size", "region"),
        ("rate_iops", "rate"),
    ] {
        assert_eq!(Setting::find(alias).unwrap().name, name);
    }
}

#[test]
fn wrong_values_name_the_setting() {
    for (name, text) in [
        ("bs", "4kB"),
        ("threads", "-1"),
        ("threads", "99999999999"),
        ("read_percent", "101"),
        ("batch", "0%"),
        ("time", "0"),
        ("bytes", "0"),
        ("sqpoll", "maybe"),
        ("backend", "aio"),
        ("pattern", "zipf:x"),
        ("rate", "-5"),
        ("rate", "50M"),
        ("rate", "1e3"),
        ("rate", "1000000001"),
        ("arrivals", "burst"),
        ("linkage", "both"),
        ("command", "cat {path}"),
        ("tool", "bonnie++"),
        ("workload", "RW"),
        ("layout", "own"),
        ("descriptors", "both"),
        ("nice", "20"),
        ("realtime", "0"),
        ("system", "scheduler"),
    ] {
        let error = Setting::find(name).unwrap().canonical(text).unwrap_err();
        assert!(error.message().starts_with(name), "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}

#[test]
fn optional_settings_take_none_and_say_so_once() {
    for setting in SETTINGS {
        let mut cell = CellSpec::default();
        let absent = setting.set(&mut cell, "none").is_ok();
        let absent = absent && matches!(setting.value(&cell), Value::None);
        assert_eq!(setting.is_optional, absent, "{}", setting.name);
        let refused = ["!", "0", "-1"].map(|text| setting.canonical(text).err());
        for error in refused.into_iter().flatten() {
            let remedy = error.remedy().unwrap_or_default();
            assert_eq!(remedy.ends_with(OR_NONE), absent, "{error}");
            assert_eq!(
                remedy.matches("or none").count(),
                usize::from(absent),
                "{error}"
            );
        }
    }
}

#[test]
fn a_bound_can_be_lifted() {
    let mut cell = CellSpec::default();
    let bytes = Setting::find("bytes").unwrap();
    bytes.set(&mut cell, "1G").unwrap();
    bytes.set(&mut cell, "none").unwrap();
    assert_eq!(cell.trial.limit.bytes, None);
}

#[test]
fn every_setting_has_a_shown_topic() {
    for setting in SETTINGS {
        assert!(Topic::ALL.contains(&setting.topic), "{}", setting.name);
    }
}

#[test]
fn a_word_identifies_its_setting() {
    for (word, change) in [
        ("fdatasync", Some("sync=fdatasync")),
        ("io_uring", Some("backend=io_uring")),
        ("iodepth", Some("depth=...")),
        ("odsync", Some("sync=odsync")),
        ("none", None),
        ("zzzzzz", None),
        ("/mnt/disk", None),
    ] {
        assert_eq!(Setting::change_named(word).as_deref(), change, "{word}");
    }
}
