//! Which settings have a meaning on a disk that is computed. A built-in experiment is carried out without those levels of
//! its factors that have none; what the user asks for is refused.

use iolab_spec::cpus::Placement;
use iolab_spec::trial::{
    Allocate, Backend, BufferInit, BufferMemory, CacheState, Content, Descriptors, Layout,
};
use iolab_spec::{Error, Result};

use iolab_plan::cells::cells;
use iolab_plan::experiment::Experiment;
use iolab_spec::settings::{CellSpec, Setting};

/// A setting of which not all values have a meaning.
struct MeaningRule {
    setting: &'static str,
    /// Whether a value has one.
    has: fn(&CellSpec) -> bool,
    /// Why the others have none.
    why: &'static str,
}

const NO_FILES: &str = "a model is one disk without files";
const NO_HOST: &str = "system calls take no time on a model";
const NO_PROCESSOR: &str = "a model has no processor";
const NO_KERNEL: &str = "a model has no kernel";
const NO_DATA: &str = "a model keeps no data";

static RULES: &[MeaningRule] = &[
    MeaningRule {
        setting: "tool",
        has: |cell| !cell.tool.is_peer(),
        why: "other tools need a file: 'iolab serve' offers a model as one",
    },
    MeaningRule {
        setting: "command",
        has: |cell| cell.command.is_none(),
        why: NO_FILES,
    },
    MeaningRule {
        setting: "linkage",
        has: |cell| cell.linkage.is_none(),
        why: NO_FILES,
    },
    MeaningRule {
        setting: "cache",
        has: |cell| cell.trial.cache == CacheState::Direct,
        why: "a model has no page cache",
    },
    MeaningRule {
        setting: "backend",
        // They stand for one request and for several outstanding ones.
        has: |cell| {
            let backend = cell.trial.backend;
            matches!(backend, Backend::Psync | Backend::Libaio | Backend::IoUring)
        },
        why: NO_HOST,
    },
    MeaningRule {
        setting: "layout",
        has: |cell| cell.trial.layout != Layout::Private,
        why: NO_FILES,
    },
    MeaningRule {
        setting: "descriptors",
        has: |cell| cell.trial.descriptors == Descriptors::Private,
        why: NO_FILES,
    },
    MeaningRule {
        setting: "fresh",
        has: |cell| !cell.trial.fresh,
        why: NO_FILES,
    },
    MeaningRule {
        setting: "allocate",
        has: |cell| matches!(cell.trial.allocate, None | Some(Allocate::Recycled)),
        why: NO_FILES,
    },
    MeaningRule {
        setting: "noatime",
        has: |cell| !cell.trial.noatime,
        why: NO_FILES,
    },
    MeaningRule {
        setting: "buffer_init",
        has: |cell| cell.trial.buffer_init == BufferInit::Random,
        why: "no data is copied on a model",
    },
    MeaningRule {
        setting: "buffer_memory",
        has: |cell| cell.trial.buffer_memory == BufferMemory::Kernel,
        why: "no data is copied on a model",
    },
    MeaningRule {
        setting: "content",
        has: |cell| cell.trial.content == Content::Unique,
        why: NO_DATA,
    },
    MeaningRule {
        setting: "verify",
        has: |cell| !cell.trial.verify,
        why: NO_DATA,
    },
    MeaningRule {
        setting: "hardware_counters",
        has: |cell| !cell.trial.hardware_counters,
        why: NO_PROCESSOR,
    },
    MeaningRule {
        setting: "compressible",
        has: |cell| cell.trial.compressible == 0,
        why: NO_DATA,
    },
    MeaningRule {
        setting: "dedup",
        has: |cell| cell.trial.dedup == 0,
        why: NO_DATA,
    },
    MeaningRule {
        setting: "dontcache",
        has: |cell| !cell.trial.dontcache,
        why: NO_KERNEL,
    },
    MeaningRule {
        setting: "atomic",
        has: |cell| !cell.trial.atomic,
        why: NO_KERNEL,
    },
    MeaningRule {
        setting: "nowait",
        has: |cell| !cell.trial.nowait,
        why: NO_KERNEL,
    },
    MeaningRule {
        setting: "fadvise",
        has: |cell| cell.trial.fadvise.is_none(),
        why: NO_KERNEL,
    },
    MeaningRule {
        setting: "ioprio",
        has: |cell| cell.trial.ioprio.is_none(),
        why: NO_KERNEL,
    },
    MeaningRule {
        setting: "trim_percent",
        has: |cell| cell.trial.trim_percent == 0,
        why: "a model has no trim",
    },
    MeaningRule {
        setting: "cpus",
        has: |cell| cell.trial.cpus.is_none(),
        why: NO_PROCESSOR,
    },
    MeaningRule {
        setting: "placement",
        has: |cell| cell.trial.placement == Placement::Float,
        why: NO_PROCESSOR,
    },
    MeaningRule {
        setting: "memory_node",
        has: |cell| cell.trial.memory_node.is_none(),
        why: NO_PROCESSOR,
    },
    MeaningRule {
        setting: "registered",
        has: |cell| cell.trial.registered,
        why: NO_HOST,
    },
    MeaningRule {
        setting: "sqpoll",
        has: |cell| !cell.trial.sqpoll,
        why: NO_HOST,
    },
    MeaningRule {
        setting: "iopoll",
        has: |cell| !cell.trial.iopoll,
        why: NO_HOST,
    },
];

/// Leaves out the levels of an experiment that have no meaning on a model, and gives what was left out in words. `asked` says
/// of which settings the user has chosen the levels.
///
/// # Errors
/// Of kind usage: a setting none of whose values has a meaning, or one that the user asked for.
pub fn adapt(experiment: &mut Experiment, asked: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for rule in RULES {
        let Some(setting) = Setting::find(rule.setting) else {
            continue;
        };
        let (kept, without) = parted(experiment, setting, rule)?;
        if without.is_empty() {
            continue;
        }
        let named = format!("{}={}", rule.setting, without.join(","));
        if kept.is_empty() || asked(rule.setting) {
            return Err(Error::usage(format!(
                "{} does not apply to a model: {}: {}",
                experiment.name, named, rule.why
            ))
            .hint("leave it out, or measure a file or a device"));
        }
        experiment.sweep(setting, &kept)?;
        match left_out.iter_mut().find(|(why, _)| *why == rule.why) {
            Some((_, names)) => names.push(named),
            None => left_out.push((rule.why, vec![named])),
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
            let without = RULES.iter().find(|rule| !(rule.has)(&group.spec));
            if let Some(rule) = without {
                let value = Setting::find(rule.setting).map(|setting| setting.get(&group.spec));
                return Err(Error::usage(format!(
                    "{}: {}.{}={} has no meaning on a model: {}",
                    experiment.name,
                    group.name,
                    rule.setting,
                    value.unwrap_or_default(),
                    rule.why
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
    rule: &MeaningRule,
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
        match (rule.has)(&cell) {
            true => kept.push(level),
            false => without.push(level),
        }
    }
    Ok((kept, without))
}
