//! Settings without a meaning on a modelled disk. A built-in experiment leaves out the levels of its factors that have
//! none; if the user asks for one, it is refused.

use iolab_workload::cpus::Placement;
use iolab_workload::treatment::RefusableField;
use iolab_workload::trial::{
    Allocate, Backend, BufferInit, BufferMemory, CacheState, Descriptors, FileLayout, TrialSpec,
};
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result, treated};

use iolab_plan::cells::cells;
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::{CellSpec, Setting};

const NO_PEER: &str = "other tools need a file: 'iolab serve' offers a model as one";
const NO_FILES: &str = "a model is one disk without files";
const NO_HOST: &str = "system calls take no time on a model";
const NO_PROCESSOR: &str = "a model has no processor";
const NO_KERNEL: &str = "a model has no kernel";
const NO_DATA: &str = "a model keeps no data";
const NO_TRIM: &str = "a model has no trim";
const NO_COPY: &str = "no data is copied on a model";

/// Treatment of each field of a cell by a model, the most informative first.
fn treatments(cell: &CellSpec) -> impl Iterator<Item = RefusableField> {
    let programs = treated!(cell => CellSpec {
        same: [idle, unknown],
        adapted: [
            "each group is judged by itself": [groups, active],
            "it is one word for settings of the trial": [workload, batch_auto],
            "models of several targets are refused where these are named": [target],
            "its fields follow": [trial],
        ],
        cannot: [
            tool: { cell.tool.is_peer() => NO_PEER },
            command: { cell.command.is_some() => NO_FILES },
            linkage: { cell.linkage.is_some() => NO_FILES },
            system: { !cell.system.is_none() => NO_KERNEL },
        ],
    });
    programs.into_iter().chain(of_trial(&cell.trial))
}

fn of_trial(trial: &TrialSpec) -> impl IntoIterator<Item = RefusableField> + use<> {
    // These backends represent one outstanding request and several.
    let simulated = [Backend::Psync, Backend::Libaio, Backend::IoUring];
    let is_plain_space = matches!(trial.allocate, None | Some(Allocate::Recycled));
    treated!(trial => TrialSpec {
        same: [
            pattern, bs, bs_mix, skip, offset, region, threads, depth, batch, read_percent, sync,
            sync_every, first_offset, limit, rate, arrivals, thinktime, latency, seed, series_ns,
            latency_over_time,
        ],
        adapted: [
            "it says how ranks go, which no model has": [others, ranks, hosts, shift],
            "it goes only with layout=private": [files],
        ],
        cannot: [
            cache: { trial.cache != CacheState::Direct => "a model has no page cache" },
            backend: { !simulated.contains(&trial.backend) => NO_HOST },
            sqpoll: { trial.sqpoll => NO_HOST },
            iopoll: { trial.iopoll => NO_HOST },
            layout: { trial.layout == FileLayout::Private => NO_FILES },
            descriptors: { trial.descriptors != Descriptors::Private => NO_FILES },
            allocate: { !is_plain_space => NO_FILES },
            buffer_init: { trial.buffer_init != BufferInit::Random => NO_COPY },
            buffer_memory: { trial.buffer_memory != BufferMemory::Kernel => NO_COPY },
            verify: { trial.verify => NO_DATA },
            compressible: { trial.compressible > 0 => NO_DATA },
            hardware_counters: { trial.hardware_counters => NO_PROCESSOR },
            cpus: { trial.cpus.is_some() => NO_PROCESSOR },
            placement: { trial.placement != Placement::Float => NO_PROCESSOR },
            rate_slack: { !trial.rate_slack.is_zero() => NO_PROCESSOR },
            fadvise: { trial.fadvise.is_some() => NO_KERNEL },
            nice: { trial.nice.is_some() => NO_KERNEL },
            realtime: { trial.realtime.is_some() => NO_KERNEL },
            trace: { trial.trace => NO_KERNEL },
            trim_percent: { trial.trim_percent > 0 => NO_TRIM },
        ],
    })
}

/// Leaves out the levels of an experiment that have no meaning on a model, and returns them in words. `asked` says whether
/// the user has chosen the levels of a setting.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting none of whose values has a meaning, or one that the user asked
/// for.
pub fn adapt(experiment: &mut Experiment, asked: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for RefusableField { name, why, .. } in treatments(&CellSpec::default()) {
        let Some(setting) = Setting::find(name) else {
            continue;
        };
        let (kept, without) = parted(experiment, setting)?;
        if without.is_empty() {
            continue;
        }
        let named = format!("{}={}", setting.name, without.join(","));
        usage_errors! {
            kept.is_empty() || asked(setting.name) => format!("{} does not apply to a model: {named}: {why}", experiment.name),
                match asked(setting.name) {
                    true => "leave it out, or measure a file or a device".to_owned(),
                    false => instead(experiment, setting),
                };
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

/// The remedy if a model refuses the value that a definition gives to a setting: the default value, if nothing else is
/// missing.
fn instead(experiment: &Experiment, setting: &'static Setting) -> String {
    let measure = match experiment.runs_programs() {
        true => "measure a directory",
        false => "measure a file or a device",
    };
    let value = setting.get(&CellSpec::default());
    let set = format!("{}={value}", setting.name);
    let mut changed = experiment.clone();
    let is_set = changed.apply_set(&set).is_ok();
    match is_set && adapt(&mut changed, &|name| name == setting.name).is_ok() {
        true => format!("take --set {set}, or {measure}"),
        false => measure.to_owned(),
    }
}

/// Refuses settings of a group that have no meaning.
fn check_groups(experiment: &Experiment) -> Result<()> {
    for cell in cells(experiment)? {
        for group in cell.spec.active() {
            let refused = treatments(&group.spec).find_map(|f| Some((f.name, f.refusal()?)));
            if let Some((setting, why)) = refused {
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

/// The levels of a setting with a meaning, and the levels without one; for a fixed setting its value.
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
        match treatments(&cell).any(|f| f.name == setting.name && f.refusal().is_some()) {
            false => kept.push(level),
            true => without.push(level),
        }
    }
    Ok((kept, without))
}
