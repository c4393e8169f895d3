//! Orders of the root to the other ranks, one after another.

use serde::{Deserialize, Serialize};

use iolab_storage::ExtraFiles;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

use super::unreadable;

/// An order of the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RootOrder {
    /// Opening of these targets.
    Open(Vec<RemoteTarget>),
    /// Filling of each rank's own files.
    Fill {
        /// Seed of the data.
        seed: u64,
        /// Most bytes that all ranks fill together.
        bytes: u64,
    },
    /// Running a trial; each rank derives its own workers from it.
    Trial {
        /// The settings that differ from the default ones, each by its name.
        settings: Vec<(String, String)>,
        seed: u64,
        /// Number of its target.
        target: usize,
    },
    /// End of the run: removal of each rank's own files.
    End,
    /// Idle time of the root for its devices before its next order, ns.
    Rest(u64),
    /// Trials are kept from now on: how to finish the run if a rank is lost.
    Keep(String),
}

/// A target as the other ranks open it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteTarget {
    /// Absolute path: of the root's scratch directory, or of the existing target.
    pub(super) path: String,
    /// Whether the target is a scratch file.
    pub(super) scratch: bool,
    /// Used bytes.
    pub(super) bytes: u64,
    /// Files that each rank makes for its own workers.
    pub(super) beside: ExtraFiles,
    /// Needs of each rank, if the path means a different one for each rank.
    pub(super) own: Option<Own>,
    /// Path of a folder, different for each rank, in which each sees the root's scratch file.
    pub(super) seen_in: Option<String>,
}

/// Needs of a rank from its own target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Own {
    /// Whether the rank writes to the target.
    pub(super) write: bool,
    /// Name of the root's scratch directory, which may be in the same store, on a mount with separate locks.
    pub(super) roots: Option<String>,
}

impl RootOrder {
    /// The order to run a trial on the target with this number.
    ///
    /// # Errors
    /// The trial does not consist of settings alone.
    pub(super) fn trial(trial: &TrialSpec, target: usize) -> Result<Self> {
        let own = CellSpec::of(trial.clone());
        let plain = CellSpec::of(TrialSpec::default());
        let differing = SETTINGS.iter().filter_map(|setting| {
            let value = setting.get(&own);
            (value != setting.get(&plain)).then(|| (setting.name.to_owned(), value))
        });
        let settings: Vec<(String, String)> = differing.collect();
        let seed = trial.seed;
        match trial_of(&settings, seed)? == *trial {
            true => Ok(Self::Trial {
                settings,
                seed,
                target,
            }),
            false => Err(Error::failed(
                "a trial cannot be described to the other ranks",
            )),
        }
    }
}

/// The trial with these settings.
///
/// # Errors
/// A name or a value that this program does not have.
pub(super) fn trial_of(settings: &[(String, String)], seed: u64) -> Result<TrialSpec> {
    let mut cell = CellSpec::of(TrialSpec::default());
    for (name, text) in settings {
        let setting = Setting::find(name).ok_or_else(unreadable)?;
        setting.set(&mut cell, text)?;
    }
    cell.trial.seed = seed;
    Ok(cell.trial)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_cluster::link::{decode, encode};
    use iolab_storage::PrivateFiles;
    use iolab_workload::trial::{Batch, Others, Pattern, TrialLimit};

    use super::*;

    fn round(order: &RootOrder) {
        let message = encode(order);
        let read = |message: &[u8]| decode::<RootOrder>(message);
        assert_eq!(read(&message).as_ref(), Some(order));
        for length in 0..message.len() {
            assert_ne!(read(&message[..length]).as_ref(), Some(order));
        }
    }

    #[test]
    fn orders_arrive_as_they_were_given() {
        round(&RootOrder::End);
        round(&RootOrder::Fill {
            seed: 1 << 60,
            bytes: 1 << 40,
        });
        round(&RootOrder::Rest(1 << 60));
        round(&RootOrder::Keep("iolab resume ä.iolab".to_owned()));
        round(&RootOrder::Open(vec![RemoteTarget {
            path: "/lustre/ä b".to_owned(),
            scratch: true,
            bytes: 1 << 40,
            seen_in: Some("/mnt/{rank}".to_owned()),
            ..RemoteTarget::default()
        }]));
        round(&RootOrder::Open(vec![RemoteTarget {
            path: "/mnt/{host}/{rank}".to_owned(),
            bytes: 4096,
            beside: ExtraFiles {
                private: vec![PrivateFiles {
                    threads: 2,
                    bs: 4096,
                    ranks: 3,
                    files: None,
                }],
                fresh: 3,
            },
            own: Some(Own {
                write: true,
                roots: Some(".iolab-scratch-0123456789abcdef".to_owned()),
            }),
            ..RemoteTarget::default()
        }]));
        round(&given(&TrialSpec {
            pattern: Pattern::Zipf(1.2),
            bs: 12_345,
            region: (1 << 30) + 512,
            batch: Batch::Percent(37),
            limit: TrialLimit {
                time: Some(Duration::from_nanos(123_456_789)),
                ..TrialLimit::default()
            },
            seed: u64::MAX,
            ..TrialSpec::default()
        }));
    }

    /// The order of a trial, from which the same trial is read.
    fn given(trial: &TrialSpec) -> RootOrder {
        let order = RootOrder::trial(trial, 3).expect("settings alone");
        let RootOrder::Trial { settings, seed, .. } = &order else {
            panic!("{order:?}");
        };
        assert_eq!(trial_of(settings, *seed).as_ref(), Ok(trial));
        order
    }

    #[test]
    fn order_contains_every_setting_of_a_trial() {
        for setting in SETTINGS {
            let mut cell = CellSpec::default();
            setting.set(&mut cell, setting.example).expect("a value");
            round(&given(&cell.trial));
        }
    }

    #[test]
    fn trials_beyond_settings_are_refused() {
        let trial = TrialSpec {
            others: Others {
                before: 1,
                after: 0,
                before_written: None,
            },
            ..TrialSpec::default()
        };
        assert!(RootOrder::trial(&trial, 0).is_err());
    }
}
