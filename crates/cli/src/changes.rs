//! The options that change an experiment, as the changes they stand for.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iolab_peers::{PEERS, adapt};
use iolab_plan::experiment::{Change, Experiment};
use iolab_runner::Disk;
use iolab_storage::Consent;
use iolab_workload::Result;
use iolab_workload::tool::Tool;

use crate::arguments::{Changes, ConsentOption};

/// The changes that the options ask for, in the order in which they are applied.
pub(crate) struct Asked {
    changes: Vec<Change>,
    /// Whether peers are named, for which a plan is adapted.
    peers: bool,
}

impl Changes {
    /// Reads every change: the short forms, then the `--set`s, which win.
    ///
    /// # Errors
    /// Of kind usage, naming the change.
    pub(crate) fn read(&self) -> Result<Asked> {
        let flags = [
            (self.direct, "cache", "direct", "--direct"),
            (self.buffered, "cache", "cold", "--buffered"),
            (self.fresh, "fresh", "true", "--fresh"),
        ];
        let flags = flags.into_iter().filter(|(given, ..)| *given);
        let flags = flags.map(|(_, name, value, said)| (name, value, said.to_owned()));
        let values = [
            ("region", &self.size),
            ("threads", &self.threads),
            ("depth", &self.depth),
            ("rate", &self.rate),
            ("time", &self.time),
            ("precision", &self.precision),
            ("budget", &self.budget),
            ("precondition", &self.precondition),
            ("settle", &self.settle),
        ];
        let values = values
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .map(|(name, value)| {
                let option = if name == "region" { "size" } else { name };
                (name, value, format!("--{option} {value}"))
            });
        let tools = self.tools();
        let peers = tools.as_deref();
        let peers = peers.map(|tools| ("tool", tools, format!("--set tool={tools}")));
        let changes = flags.chain(values).chain(peers);
        let changes = changes.map(|(name, value, said)| Change::of_option(name, value, said));
        let sets = self.sets.iter().map(|set| Change::parse(set));
        Ok(Asked {
            changes: changes.chain(sets).collect::<Result<_>>()?,
            peers: !self.peers.is_empty(),
        })
    }

    /// iolab and its peers, each once, where there are peers.
    fn tools(&self) -> Option<String> {
        let tools = PEERS.iter().map(|peer| peer.tool());
        let asked = tools.filter(|tool| self.peers.iter().any(|name| name == tool.name()));
        let tools = [Tool::IOLAB].into_iter().chain(asked);
        let tools: Vec<String> = tools.map(|tool| tool.to_string()).collect();
        (!self.peers.is_empty()).then(|| tools.join(","))
    }

    /// The seed asked for, or a new one.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(new_seed)
    }
}

impl Asked {
    /// Whether the user chose this setting, whichever way and under whichever of its names.
    pub(crate) fn has(&self, setting: &str) -> bool {
        self.changes.iter().any(|change| change.is_of(setting))
    }

    /// The budget asked for.
    pub(crate) fn budget(&self) -> Option<Duration> {
        self.changes.iter().rev().find_map(Change::budget)
    }

    /// Applies every change to an experiment, adapts it to the peers that are named, and leaves out the I/O sizes that are
    /// larger than what there is to touch, unless the user named them. Gives notes of what it did by itself.
    ///
    /// # Errors
    /// Of kind usage, naming the change.
    pub(crate) fn apply(
        &self,
        experiment: &mut Experiment,
        targets: &[PathBuf],
        model: Option<&Disk>,
    ) -> Result<Vec<String>> {
        for change in &self.changes {
            experiment.apply(change)?;
        }
        let mut notes = Vec::new();
        if self.peers {
            notes.extend(adapt(experiment, &|setting| self.has(setting))?);
        }
        if self.has("bs") {
            return Ok(notes);
        }
        let region = experiment.base()?.trial.region;
        // An existing file is never extended.
        let files = targets
            .iter()
            .filter_map(|target| std::fs::metadata(target).ok());
        let least = files.filter(|m| m.is_file()).map(|m| m.len()).min();
        let most = model.map(Disk::bytes).or(least);
        let room = most.map_or(region, |bytes| region.min(bytes));
        notes.extend(experiment.leave_out_sizes_above(room)?);
        Ok(notes)
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

/// A seed from the time of day and the process: different each time, and short enough to type.
pub(crate) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = now.map_or(0, |d| d.as_nanos() as u64);
    (ns ^ (u64::from(std::process::id()) << 20)) % (1 << 32)
}
