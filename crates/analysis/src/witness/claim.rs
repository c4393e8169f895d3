//! Claims that an observation supports, in the order in which they are printed. `iolab-report` writes their
//! sentences.

use schemars::JsonSchema;
use serde::Serialize;

use iolab_record::witness::Claimed;
use iolab_record::{ServedBy, ServedVerdict};
use iolab_workload::counters::DeviceStat;
use iolab_workload::named;
use iolab_workload::witness::{ObservedDevice, Subject, TracedProgram};

use super::{Bounds, DeviceLoad, Direction, Evidence, Flushes, OtherCommand, OtherUse};
use crate::claim::Role;

named! {
    /// Direction of a transfer.
    pub enum Transfer: "transfer" {
        /// From storage to the program.
        Read = "read",
        /// From the program to storage.
        Write = "write",
    }
}

impl Transfer {
    /// Bytes that a device carried in this direction.
    pub(super) fn of(self, stat: &DeviceStat) -> u64 {
        match self {
            Self::Read => stat.read_bytes,
            Self::Write => stat.write_bytes,
        }
    }
}

/// A statement about an observation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "evidence", rename_all = "snake_case")]
pub enum WitnessClaim<'a> {
    /// The program moved less than [`NOTEWORTHY`](super::NOTEWORTHY).
    NothingOfNote,
    /// Source of the bytes that the program read, or destination of those that it wrote.
    Served {
        /// Direction of the bytes.
        transfer: Transfer,
        /// Names of the devices in question that carried bytes in this direction; all of them where none is known.
        devices: Vec<String>,
        /// Bytes that were asked for and carried.
        direction: &'a Direction,
        /// The verdict.
        #[serde(skip)]
        verdict: &'a ServedVerdict,
    },
    /// Flushes of a write cache that the devices completed while the program wrote, of all processes.
    Flushes(&'a Flushes),
    /// Syncs of the program, as the kernel traced them.
    Syncs(&'a TracedProgram),
    /// Traffic of other processes on the devices in question.
    OtherUse(OtherUse),
    /// The program says that it moved more than devices can have carried.
    Overstated {
        /// The tool whose report says so.
        tool: &'a str,
        /// Direction of the bytes.
        transfer: Transfer,
        /// Bytes and rate that the tool reports.
        claimed: Claimed,
        /// Bytes that devices carried.
        carried: Bounds,
    },
    /// Load of a device that was observed without a program.
    DeviceLoad {
        /// The device.
        device: &'a ObservedDevice,
        /// Its load; `None` where it does not count.
        load: Option<DeviceLoad>,
    },
    /// The processes of one name that did most I/O meanwhile, on any disk.
    MostIo(OtherCommand<'a>),
}

impl Evidence {
    /// All claims that the evidence supports, in the order in which they are printed.
    pub fn claims(&self) -> Vec<WitnessClaim<'_>> {
        match self.observed.subject {
            Subject::Devices => self.of_devices(),
            Subject::Program(_) | Subject::Process { .. } => self.of_program(),
        }
    }

    fn of_devices(&self) -> Vec<WitnessClaim<'_>> {
        let observed = &self.observed;
        let loads = observed.devices.iter();
        let loads = loads.map(|device| WitnessClaim::DeviceLoad {
            device,
            load: DeviceLoad::of(device, observed.observed_ns),
        });
        let most = OtherCommand::all(&observed.others).into_iter().next();
        loads.chain(most.map(WitnessClaim::MostIo)).collect()
    }

    fn of_program(&self) -> Vec<WitnessClaim<'_>> {
        let mut claims = Vec::new();
        for (transfer, direction) in self.directions() {
            claims.extend(
                direction
                    .verdict
                    .as_ref()
                    .map(|verdict| WitnessClaim::Served {
                        transfer,
                        devices: self.devices_of(transfer),
                        direction,
                        verdict,
                    }),
            );
        }
        let has_bytes = !claims.is_empty();
        let trace = self.observed.trace.as_ref();
        match trace.filter(|trace| trace.syncs.syncs > 0) {
            // The disk counts flushes of all processes, so traced syncs take precedence.
            Some(trace) => claims.push(WitnessClaim::Syncs(trace)),
            None if self.writes.verdict.is_some() => {
                let flushes = self.flushes.as_ref();
                let flushes = flushes.filter(|flushes| flushes.completed > 0);
                claims.extend(flushes.map(WitnessClaim::Flushes));
            }
            None => {}
        }
        if has_bytes && !self.devices.is_empty() {
            claims.push(WitnessClaim::OtherUse(self.others));
        }
        claims.extend(self.overstated());
        if claims.is_empty() {
            claims.push(WitnessClaim::NothingOfNote);
        }
        claims
    }

    /// Reads and writes with their evidence.
    pub fn directions(&self) -> [(Transfer, &Direction); 2] {
        [
            (Transfer::Read, &self.reads),
            (Transfer::Write, &self.writes),
        ]
    }

    fn overstated(&self) -> impl Iterator<Item = WitnessClaim<'_>> {
        self.claim.iter().flat_map(|claim| {
            self.directions()
                .into_iter()
                .filter_map(|(transfer, direction)| {
                    let claimed = match transfer {
                        Transfer::Read => claim.reads,
                        Transfer::Write => claim.writes,
                    }?;
                    let carried = direction.carried?;
                    carried
                        .is_exceeded_by(claimed)
                        .then_some(WitnessClaim::Overstated {
                            tool: &claim.tool,
                            transfer,
                            claimed,
                            carried,
                        })
                })
        })
    }
}

impl WitnessClaim<'_> {
    /// Name of the claim in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NothingOfNote => "nothing-of-note",
            Self::Served { .. } => "served-by",
            Self::Flushes(_) => "cache-flushes",
            Self::Syncs(_) => "syncs",
            Self::OtherUse(_) => "other-use",
            Self::Overstated { .. } => "more-than-devices",
            Self::DeviceLoad { .. } => "device-load",
            Self::MostIo(_) => "most-io",
        }
    }

    /// Role of the claim in a conclusion.
    pub fn role(&self) -> Role {
        match self {
            Self::Served { verdict, .. } if verdict.served_by == ServedBy::Unknown => Role::Nothing,
            Self::DeviceLoad { load: None, .. } | Self::OtherUse(OtherUse::Unknown) => {
                Role::Nothing
            }
            Self::OtherUse(OtherUse::Some { .. }) => Role::Weakness,
            Self::NothingOfNote
            | Self::Served { .. }
            | Self::Syncs(_)
            | Self::Overstated { .. }
            | Self::DeviceLoad { .. } => Role::Answer,
            Self::MostIo(_) => Role::Explanation,
            Self::Flushes(_) | Self::OtherUse(OtherUse::None | OtherUse::Little { .. }) => {
                Role::Detail
            }
        }
    }
}
