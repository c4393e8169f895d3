//! Disturbances that slow some trials, and the counters that show them.

use iolab_record::{Sample, ServedBy, ServedVerdict};

use crate::cell_selection::At;

/// Cause of a disturbance.
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

/// Visibility of a disturbance in the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Counters that show the disturbance.
    Shown,
    /// Counters that were not read, so that the origin of the bytes is unknown.
    NotCounted,
    /// Counters that show no disturbance.
    Hidden,
}

/// A disturbance of some trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// Cause of the disturbance.
    pub by: Disturber,
    /// Cells that it can affect.
    pub at: At,
    /// Share of their trials that it affects, at random; 1 for all.
    pub share: f64,
    /// Throughput with it over throughput without it.
    pub ratio: f64,
    /// Visibility in the counters.
    pub evidence: Evidence,
}

impl Disturbance {
    /// A visible disturbance of every trial of some cells, which multiplies their throughput by `ratio`.
    pub fn of_every_trial(by: Disturber, at: At, ratio: f64) -> Self {
        Self {
            by,
            at,
            share: 1.0,
            ratio,
            evidence: Evidence::Shown,
        }
    }

    /// Adds the evidence of the disturbance to a trial.
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
                    // Two thirds of the trial's bytes are 40 % of all bytes.
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
