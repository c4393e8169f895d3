//! The options that change an experiment, as the `--set` they stand for.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use iolab_engine::target::Consent;
use iolab_lab::Result;
use iolab_lab::experiment::Experiment;
use iolab_lab::settings::Setting;
use iolab_lab::tool::Tool;
use iolab_lab::units::{format_size, parse_size};

use crate::arguments::{Changes, ConsentOption, PeerName};

impl Changes {
    /// Every change as `NAME=VALUE`: the short forms, then the `--set`s, which win.
    pub(crate) fn sets(&self) -> Vec<String> {
        let mut sets = Vec::new();
        for (given, set) in [
            (self.direct, "cache=direct"),
            (self.buffered, "cache=cold"),
            (self.fresh, "fresh=true"),
        ] {
            if given {
                sets.push(set.to_owned());
            }
        }
        for (name, value) in [
            ("region", &self.size),
            ("threads", &self.threads),
            ("depth", &self.depth),
            ("rate", &self.rate),
            ("time", &self.time),
            ("precision", &self.precision),
            ("budget", &self.budget),
            ("precondition", &self.precondition),
            ("settle", &self.settle),
        ] {
            sets.extend(value.as_ref().map(|value| format!("{name}={value}")));
        }
        sets.extend(self.tools());
        sets.extend(self.sets.iter().cloned());
        sets
    }

    /// iolab and its peers, each once, where there are peers.
    fn tools(&self) -> Option<String> {
        let asked = |peer| self.peers.contains(&peer);
        let named = [(PeerName::Fio, Tool::Fio), (PeerName::Iozone, Tool::Iozone)];
        let peers = named.into_iter().filter(|(name, _)| asked(*name));
        let text = peers.fold(format!("tool={}", Tool::Iolab), |text, (_, tool)| {
            format!("{text},{tool}")
        });
        (!self.peers.is_empty()).then_some(text)
    }

    /// Whether the user chose this setting, whichever way and under whichever of its names.
    pub(crate) fn has(&self, setting: &str) -> bool {
        self.sets().iter().any(|set| name_of(set) == setting)
    }

    /// The seed asked for, or a new one.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(new_seed)
    }

    /// Applies every change to an experiment, and leaves out the I/O sizes that are larger than
    /// what there is to touch, unless the user named them. Gives a note when it did.
    ///
    /// # Errors
    /// Of kind usage, naming the change.
    pub(crate) fn apply(
        &self,
        experiment: &mut Experiment,
        target: &Path,
    ) -> Result<Option<String>> {
        for set in self.sets() {
            experiment.apply_set(&set)?;
        }
        if self.has("bs") {
            return Ok(None);
        }
        let region = experiment.base()?.trial.region;
        // An existing file is never extended.
        let file = std::fs::metadata(target).ok().filter(|m| m.is_file());
        let room = file.map_or(region, |m| region.min(m.len()));
        leave_out_sizes_above(room, experiment)
    }
}

impl ConsentOption {
    /// The consent as the engine wants it.
    pub(crate) fn consent(&self) -> Consent {
        match self.destroy_data.as_deref() {
            None => Consent::No,
            Some("") => Consent::Destroy,
            Some(signature) => Consent::DestroySignature(signature.to_owned()),
        }
    }
}

/// The setting that `NAME=VALUE` sets, by its own name.
pub(crate) fn name_of(set: &str) -> &str {
    let name = set.split_once('=').map_or(set, |(name, _)| name).trim();
    Setting::find(name).map_or(name, |setting| setting.name)
}

fn leave_out_sizes_above(room: u64, experiment: &mut Experiment) -> Result<Option<String>> {
    let Some(factor) = experiment.factors.iter().find(|f| f.setting.name == "bs") else {
        return Ok(None);
    };
    let setting = factor.setting;
    let fits = |level: &String| parse_size(level).is_ok_and(|bytes| bytes <= room);
    let (small, large): (Vec<String>, Vec<String>) = factor.levels.iter().cloned().partition(fits);
    // With none left the check of the plan says what is wrong.
    if large.is_empty() || small.is_empty() {
        return Ok(None);
    }
    experiment.sweep(setting, &small)?;
    Ok(Some(format!(
        "{}: left out bs {}, larger than the {} there are",
        experiment.name,
        large.join(", "),
        format_size(room)
    )))
}

/// A seed from the time of day and the process: different each time, and short enough to type.
fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = now.map_or(0, |d| d.as_nanos() as u64);
    (ns ^ (u64::from(std::process::id()) << 20)) % (1 << 32)
}
