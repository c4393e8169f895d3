//! What slows some trials down from outside, and what of it the counters show.

use iolab_record::{Sample, ServedBy, ServedVerdict};

use crate::at::At;

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturber {
    /// Other programs read and write on the device, four tenths of all its bytes.
    Traffic,
    /// Other programs take CPU time: tasks wait for a CPU in six tenths of the time.
    Cpu,
    /// The page cache answers.
    PageCache,
}

/// What the counters say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// They show it.
    Shown,
    /// What would show it was not counted: where the bytes came from is unknown.
    NotCounted,
    /// They look as if nothing had been.
    Hidden,
}

/// A disturbance of some trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// What it is.
    pub by: Disturber,
    /// The cells that it can concern.
    pub at: At,
    /// The share of their trials that it does concern, at random; 1 for all.
    pub share: f64,
    /// Throughput with it over throughput without it.
    pub ratio: f64,
    /// What is seen of it.
    pub evidence: Evidence,
}

impl Disturbance {
    /// Leaves its evidence in a trial.
    pub(crate) fn mark(&self, sample: &mut Sample) {
        match self.evidence {
            Evidence::Shown => self.show(sample),
            Evidence::NotCounted => {
                sample.counters.device = None;
                sample.counters.pressure.cpu_stall_ns = None;
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
                    // Two thirds of ours are four tenths of all.
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
        }
    }
}
