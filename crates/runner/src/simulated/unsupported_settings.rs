//! Settings without a meaning on a modelled disk. A built-in experiment leaves out the levels of its factors that have
//! none; if the user asks for one, it is refused.

use iolab_workload::trial::{Allocate, Backend, FileLayout, TrialSpec};
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use iolab_plan::cells::cells;
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::{CellSpec, Consumer, SETTINGS, Setting, Topic};

const NO_FILES: &str = "a model is one disk without files";
const NO_HOST: &str = "system calls take no time on a model";

/// Settings as a model takes them. Each group is judged by itself; models of several targets are refused where these are named.
const MODEL: Consumer = Consumer {
    takes: "idle active workload batch target pattern bs bs_mix skip offset region threads depth read_percent sync sync_every \
            first_offset bytes time rate arrivals thinktime latency latency_over_time ranks hosts shift files",
    lacks: &[
        (
            "tool",
            "other tools need a file: 'iolab serve' offers a model as one",
        ),
        ("command linkage descriptors", NO_FILES),
        ("cache", "a model has no page cache"),
        ("sqpoll iopoll", NO_HOST),
        ("buffer_init buffer_memory", "no data is copied on a model"),
        ("verify compressible", "a model keeps no data"),
        (
            "hardware_counters cpus placement rate_slack",
            "a model has no processor",
        ),
        (
            "system fadvise nice realtime trace",
            "a model has no kernel",
        ),
        ("trim_percent", "a model has no trim"),
    ],
    cannot,
};

fn cannot(trial: &TrialSpec) -> Vec<(&'static str, bool, &'static str)> {
    // These backends represent one outstanding request and several.
    let simulated = [Backend::Psync, Backend::Libaio, Backend::IoUring];
    let is_plain_space = matches!(trial.allocate, None | Some(Allocate::Recycled));
    vec![
        ("backend", !simulated.contains(&trial.backend), NO_HOST),
        ("layout", trial.layout == FileLayout::Private, NO_FILES),
        ("allocate", !is_plain_space, NO_FILES),
    ]
}

/// Why a model refuses the value of this setting in a cell.
fn refusal(setting: &Setting, cell: &CellSpec) -> Option<&'static str> {
    let refusals = MODEL.refusals(cell);
    let own = refusals.iter().find(|(other, _)| *other == setting);
    own.map(|(_, why)| *why)
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
    // That it runs a program is the first reason.
    let (programs, others): (Vec<_>, Vec<_>) = SETTINGS
        .iter()
        .partition(|setting| setting.topic == Topic::Programs);
    for setting in programs.into_iter().chain(others) {
        let Parted { kept, without, why } = parted(experiment, setting)?;
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
            if let Some((setting, why)) = MODEL.refusals(&group.spec).first() {
                return Err(Error::usage(format!(
                    "{}: {}.{}={} has no meaning on a model: {why}",
                    experiment.name,
                    group.name,
                    setting.name,
                    setting.get(&group.spec)
                ))
                .hint("leave it out, or measure a file or a device"));
            }
        }
    }
    Ok(())
}

/// The levels of a setting.
#[derive(Default)]
struct Parted {
    /// Levels with a meaning on a model.
    kept: Vec<String>,
    /// Levels without a meaning on a model.
    without: Vec<String>,
    /// Why these levels have no meaning.
    why: &'static str,
}

/// The levels of a setting; for a fixed setting its value.
fn parted(experiment: &Experiment, setting: &'static Setting) -> Result<Parted> {
    let base = experiment.base()?;
    let factor = experiment.factors.iter().find(|f| f.of == setting.into());
    let levels = match factor {
        Some(factor) => factor.levels.clone(),
        None => vec![setting.get(&base)],
    };
    let mut parted = Parted::default();
    for level in levels {
        let mut cell = base.clone();
        setting.set(&mut cell, &level)?;
        match refusal(setting, &cell) {
            None => parted.kept.push(level),
            Some(why) => {
                parted.why = why;
                parted.without.push(level);
            }
        }
    }
    Ok(parted)
}
