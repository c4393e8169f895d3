//! Which settings have a meaning on a disk that is computed. A built-in experiment is carried out without those levels of
//! its factors that have none; what the user asks for is refused.

use iolab_workload::cpus::Placement;
use iolab_workload::trial::{
    Allocate, Backend, BufferInit, BufferMemory, CacheState, Content, Descriptors, FileLayout,
    TrialSpec,
};
use iolab_workload::{Error, Result};

use iolab_plan::cells::cells;
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::{CellSpec, Setting};

const NO_PEER: &str = "other tools need a file: 'iolab serve' offers a model as one";
const NO_CACHE: &str = "a model has no page cache";
const NO_FILES: &str = "a model is one disk without files";
const NO_HOST: &str = "system calls take no time on a model";
const NO_PROCESSOR: &str = "a model has no processor";
const NO_KERNEL: &str = "a model has no kernel";
const NO_DATA: &str = "a model keeps no data";
const NO_TRIM: &str = "a model has no trim";
const NO_COPY: &str = "no data is copied on a model";

/// A setting of which not all values have a meaning.
struct Meaning {
    setting: &'static str,
    /// Whether its value in a cell has one.
    has: bool,
    /// Why other values have none.
    why: &'static str,
}

/// Settings whose other values have no meaning for the same reason.
fn because<const N: usize>(
    why: &'static str,
    rows: [(&'static str, bool); N],
) -> impl Iterator<Item = Meaning> {
    rows.into_iter()
        .map(move |(setting, has)| Meaning { setting, has, why })
}

/// Which settings of a cell have a meaning, those first that tell most.
fn meanings(cell: &CellSpec) -> impl Iterator<Item = Meaning> {
    // Every setting stands here, or in `of_trial`, so that a new one is simulated or refused, and not forgotten.
    let CellSpec {
        trial,
        groups: _,
        active: _,
        workload: _,
        batch_auto: _,
        linkage,
        command,
        tool,
        // Models of several targets are refused where these are named.
        target: _,
        system,
        // A session lets that much virtual time pass.
        idle: _,
    } = cell;
    let programs = [
        ("command", command.is_none()),
        ("linkage", linkage.is_none()),
    ];
    because(NO_PEER, [("tool", !tool.is_peer())])
        .chain(because(NO_FILES, programs))
        .chain(of_trial(trial))
        .chain(because(NO_KERNEL, [("system", system.is_none())]))
}

fn of_trial(trial: &TrialSpec) -> impl Iterator<Item = Meaning> {
    let TrialSpec {
        // The simulation heeds these.
        pattern: _,
        bs: _,
        bs_mix: _,
        skip: _,
        skip_every: _,
        random_every: _,
        offset: _,
        region: _,
        segments: _,
        threads: _,
        depth: _,
        batch: _,
        read_percent: _,
        sync: _,
        sync_every: _,
        first_offset: _,
        limit: _,
        steady: _,
        rate: _,
        arrivals: _,
        thinktime: _,
        thinktime_every: _,
        bursts: _,
        latency: _,
        seed: _,
        series_ns: _,
        start_delay: _,
        flow: _,
        ends_trial: _,
        // They say how trims, ranks and stripes go, which no model has.
        trim_by: _,
        others: _,
        ranks: _,
        hosts: _,
        shift: _,
        stripe: _,
        latency_over_time: _,
        // Judged below, by theme.
        backend: _,
        registered: _,
        sqpoll: _,
        sqpoll_cpu: _,
        iopoll: _,
        cache: _,
        layout: _,
        // Only with layout=private.
        files: _,
        descriptors: _,
        fresh: _,
        allocate: _,
        noatime: _,
        buffer_init: _,
        buffer_memory: _,
        content: _,
        write_hint: _,
        verify: _,
        compressible: _,
        dedup: _,
        // Only with dedup.
        dedup_set: _,
        hardware_counters: _,
        thinktime_spin: _,
        cpus: _,
        placement: _,
        memory_node: _,
        dontcache: _,
        atomic: _,
        nowait: _,
        fadvise: _,
        ioprio: _,
        nice: _,
        realtime: _,
        trace: _,
        trim_percent: _,
        trim_first: _,
    } = trial;
    let trims = [
        ("trim_percent", trial.trim_percent == 0),
        ("trim_first", !trial.trim_first),
    ];
    because(NO_CACHE, [("cache", trial.cache == CacheState::Direct)])
        .chain(because(NO_HOST, calls(trial)))
        .chain(because(NO_FILES, files(trial)))
        .chain(because(NO_COPY, buffers(trial)))
        .chain(because(NO_DATA, data(trial)))
        .chain(because(NO_PROCESSOR, processor(trial)))
        .chain(because(NO_KERNEL, kernel(trial)))
        .chain(because(NO_TRIM, trims))
}

fn calls(trial: &TrialSpec) -> [(&'static str, bool); 5] {
    // They stand for one request and for several outstanding ones.
    let simulated = [Backend::Psync, Backend::Libaio, Backend::IoUring];
    [
        ("backend", simulated.contains(&trial.backend)),
        ("registered", trial.registered),
        ("sqpoll", !trial.sqpoll),
        ("sqpoll_cpu", trial.sqpoll_cpu.is_none()),
        ("iopoll", !trial.iopoll),
    ]
}

fn files(trial: &TrialSpec) -> [(&'static str, bool); 5] {
    let is_plain_space = matches!(trial.allocate, None | Some(Allocate::Recycled));
    [
        ("layout", trial.layout != FileLayout::Private),
        ("descriptors", trial.descriptors == Descriptors::Private),
        ("fresh", !trial.fresh),
        ("allocate", is_plain_space),
        ("noatime", !trial.noatime),
    ]
}

fn buffers(trial: &TrialSpec) -> [(&'static str, bool); 2] {
    [
        ("buffer_init", trial.buffer_init == BufferInit::Random),
        ("buffer_memory", trial.buffer_memory == BufferMemory::Kernel),
    ]
}

fn data(trial: &TrialSpec) -> [(&'static str, bool); 5] {
    [
        ("content", trial.content == Content::Unique),
        ("write_hint", trial.write_hint.is_none()),
        ("verify", !trial.verify),
        ("compressible", trial.compressible == 0),
        ("dedup", trial.dedup == 0),
    ]
}

fn processor(trial: &TrialSpec) -> [(&'static str, bool); 5] {
    [
        ("hardware_counters", !trial.hardware_counters),
        ("cpus", trial.cpus.is_none()),
        ("placement", trial.placement == Placement::Float),
        ("memory_node", trial.memory_node.is_none()),
        ("thinktime_spin", trial.thinktime_spin.is_zero()),
    ]
}

fn kernel(trial: &TrialSpec) -> [(&'static str, bool); 8] {
    [
        ("dontcache", !trial.dontcache),
        ("atomic", !trial.atomic),
        ("nowait", !trial.nowait),
        ("fadvise", trial.fadvise.is_none()),
        ("ioprio", trial.ioprio.is_none()),
        ("nice", trial.nice.is_none()),
        ("realtime", trial.realtime.is_none()),
        ("trace", !trial.trace),
    ]
}

/// Leaves out the levels of an experiment that have no meaning on a model, and gives what was left out in words. `asked` says
/// of which settings the user has chosen the levels.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting none of whose values has a meaning, or one that the user asked for.
pub fn adapt(experiment: &mut Experiment, asked: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for Meaning { setting, why, .. } in meanings(&CellSpec::default()) {
        let Some(setting) = Setting::find(setting) else {
            continue;
        };
        let (kept, without) = parted(experiment, setting)?;
        if without.is_empty() {
            continue;
        }
        let named = format!("{}={}", setting.name, without.join(","));
        if kept.is_empty() || asked(setting.name) {
            return Err(Error::usage(format!(
                "{} does not apply to a model: {named}: {why}",
                experiment.name
            ))
            .hint(match asked(setting.name) {
                true => "leave it out, or measure a file or a device".to_owned(),
                false => format!(
                    "choose another value (--set {}=...), or measure a file or a device",
                    setting.name
                ),
            }));
        }
        experiment.sweep(setting, &kept)?;
        match left_out.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(named),
            None => left_out.push((why, vec![named])),
        }
    }
    check_groups(experiment)?;
    if !experiment.names("buffer_memory") {
        // The default of a new run is meant for real devices.
        experiment.apply_set("buffer_memory=kernel")?;
    }
    let reasons: Vec<String> = left_out
        .into_iter()
        .map(|(why, names)| format!("{} ({why})", names.join(", ")))
        .collect();
    Ok((!reasons.is_empty()).then(|| {
        format!(
            "{}: ignored, because it does not apply to a model: {}",
            experiment.name,
            reasons.join("; ")
        )
    }))
}

/// Refuses what a group asks for that has no meaning.
fn check_groups(experiment: &Experiment) -> Result<()> {
    for cell in cells(experiment)? {
        for group in cell.spec.active() {
            if let Some(Meaning { setting, why, .. }) = meanings(&group.spec).find(|m| !m.has) {
                let value = Setting::find(setting).map(|setting| setting.get(&group.spec));
                return Err(Error::usage(format!(
                    "{}: {}.{setting}={} has no meaning on a model: {why}",
                    experiment.name,
                    group.name,
                    value.unwrap_or_default()
                ))
                .hint("leave it out, or measure a file or a device"));
            }
        }
    }
    Ok(())
}

/// The levels of a setting that have a meaning, and those that have none; of one that is fixed its value.
fn parted(
    experiment: &Experiment,
    setting: &'static Setting,
) -> Result<(Vec<String>, Vec<String>)> {
    let base = experiment.base()?;
    let factor = experiment.factors.iter().find(|f| f.of == setting.into());
    let levels = match factor {
        Some(factor) => factor.levels.clone(),
        None => vec![setting.get(&base)],
    };
    let (mut kept, mut without) = (Vec::new(), Vec::new());
    for level in levels {
        let mut cell = base.clone();
        setting.set(&mut cell, &level)?;
        match meanings(&cell).any(|m| m.setting == setting.name && !m.has) {
            false => kept.push(level),
            true => without.push(level),
        }
    }
    Ok((kept, without))
}
