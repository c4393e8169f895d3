//! Disturbances that slow some trials, and the counters that show them.

use iolab_record::{Sample, ServedBy, ServedVerdict};

use crate::cell_selection::At;

/// The cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturber {
    /// Other programs read and write on the device: 40 % of all its bytes.
    Traffic,
    /// Other programs use CPU time: tasks wait for a CPU in 60 % of the time.
    Cpu,
    /// The page cache serves requests.
    PageCache,
    /// The machine sleeps for a second.
    Sleep,
}

/// What the counters show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The disturbance.
    Shown,
    /// Nothing, since they were not read: the origin of the bytes is unknown.
    NotCounted,
    /// No disturbance.
    Hidden,
}

/// A disturbance of some trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// The cause.
    pub by: Disturber,
    /// The cells that it can affect.
    pub at: At,
    /// The share of their trials that it affects, at random; 1 for all.
    pub share: f64,
    /// Throughput with it over throughput without it.
    pub ratio: f64,
    /// What the counters show.
    pub evidence: Evidence,
}

impl Disturbance {
    /// One that every trial of some cells shows, and that multiplies their throughput.
    pub fn of_every_trial(by: Disturber, at: At, ratio: f64) -> Self {
        Self {
            by,
            at,
            share: 1.0,
            ratio,
            evidence: Evidence::Shown,
        }
    }

    /// Adds its evidence to a trial.
    pub(crate) fn mark(&self, sample: &mut Sample) {
        match self.evidence {
            Evidence::Shown => self.show(sample),
            Evidence::NotCounted => {
                sample.counters.device = None;
                sample.counters.pressure.cpu_stall_ns = None;
                sample.counters.pressure.suspended_ns = None;
                sample.verdict = ServedVerdict {
                    served_by: ServedBy::Unknown,
                    device_fraction: None,
                    reason: "nothing was counted".to_owned(),
                };
            }
            Evidence::Hidden => {}
        }
    }

    fn show(&self, sample: &mut Sample) {
        let ours = sample.bytes();
        match self.by {
            Disturber::Traffic => {
                if let Some(device) = &mut sample.counters.device {
                    // Two thirds of our bytes are 40 % of all bytes.
                    device.read_bytes += ours * 2 / 3;
                    device.read_ios += ours * 2 / 3 / 4096;
                }
            }
            Disturber::Cpu => {
                sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns * 6 / 10);
            }
            Disturber::PageCache => {
                sample.counters.device = sample.counters.device.map(|_| Default::default());
                if let Some(own) = &mut sample.counters.process_io {
                    (own.read_bytes, own.write_bytes) = (0, 0);
                }
                sample.verdict = ServedVerdict {
                    served_by: ServedBy::PageCache,
                    device_fraction: Some(0.0),
                    reason: "nothing reached the device".to_owned(),
                };
            }
            Disturber::Sleep => {
                sample.counters.pressure.suspended_ns = Some(1_000_000_000);
            }
        }
    }
}
