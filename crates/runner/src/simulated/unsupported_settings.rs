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

/// Which settings of a cell have a meaning, those first that tell most.
fn meanings(cell: &CellSpec) -> impl Iterator<Item = Meaning> {
    // Every setting stands here, so that a new one is simulated or refused, and not forgotten.
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
        thinktime_spin,
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
        backend,
        cpus,
        placement,
        memory_node,
        trim_percent,
        trim_first,
        layout,
        descriptors,
        fresh,
        allocate,
        cache,
        buffer_init,
        buffer_memory,
        content,
        write_hint,
        compressible,
        dedup,
        verify,
        hardware_counters,
        registered,
        sqpoll,
        sqpoll_cpu,
        iopoll,
        noatime,
        dontcache,
        atomic,
        nowait,
        fadvise,
        ioprio,
        nice,
        realtime,
        latency_over_time: _,
        trace,
    } = trial;
    // They stand for one request and for several outstanding ones.
    let simulated = [Backend::Psync, Backend::Libaio, Backend::IoUring];
    let rules = [
        (
            "tool",
            !tool.is_peer(),
            "other tools need a file: 'iolab serve' offers a model as one",
        ),
        ("command", command.is_none(), NO_FILES),
        ("linkage", linkage.is_none(), NO_FILES),
        (
            "cache",
            *cache == CacheState::Direct,
            "a model has no page cache",
        ),
        ("backend", simulated.contains(backend), NO_HOST),
        ("layout", *layout != FileLayout::Private, NO_FILES),
        (
            "descriptors",
            *descriptors == Descriptors::Private,
            NO_FILES,
        ),
        ("fresh", !fresh, NO_FILES),
        (
            "allocate",
            matches!(allocate, None | Some(Allocate::Recycled)),
            NO_FILES,
        ),
        ("noatime", !noatime, NO_FILES),
        ("buffer_init", *buffer_init == BufferInit::Random, NO_COPY),
        (
            "buffer_memory",
            *buffer_memory == BufferMemory::Kernel,
            NO_COPY,
        ),
        ("content", *content == Content::Unique, NO_DATA),
        ("write_hint", write_hint.is_none(), NO_DATA),
        ("verify", !verify, NO_DATA),
        ("hardware_counters", !hardware_counters, NO_PROCESSOR),
        ("compressible", *compressible == 0, NO_DATA),
        ("dedup", *dedup == 0, NO_DATA),
        ("dontcache", !dontcache, NO_KERNEL),
        ("atomic", !atomic, NO_KERNEL),
        ("nowait", !nowait, NO_KERNEL),
        ("fadvise", fadvise.is_none(), NO_KERNEL),
        ("ioprio", ioprio.is_none(), NO_KERNEL),
        ("nice", nice.is_none(), NO_KERNEL),
        ("realtime", realtime.is_none(), NO_KERNEL),
        ("trace", !trace, NO_KERNEL),
        ("system", system.is_none(), NO_KERNEL),
        ("trim_percent", *trim_percent == 0, NO_TRIM),
        ("trim_first", !trim_first, NO_TRIM),
        ("cpus", cpus.is_none(), NO_PROCESSOR),
        ("placement", *placement == Placement::Float, NO_PROCESSOR),
        ("memory_node", memory_node.is_none(), NO_PROCESSOR),
        ("registered", *registered, NO_HOST),
        ("sqpoll", !sqpoll, NO_HOST),
        ("sqpoll_cpu", sqpoll_cpu.is_none(), NO_HOST),
        ("iopoll", !iopoll, NO_HOST),
        ("thinktime_spin", thinktime_spin.is_zero(), NO_PROCESSOR),
    ];
    rules
        .into_iter()
        .map(|(setting, has, why)| Meaning { setting, has, why })
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
