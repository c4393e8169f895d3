//! The stages of a request: which layer has it when, and how long.

use std::ops::{Index, IndexMut};

use crate::histogram::{LatencyHistogram, new_latency_histogram};
use crate::named::named;

/// Defines [`Stage`] and [`PerStage`] from one list.
macro_rules! stages {
    ($($(#[doc = $doc:literal])* $([$default:ident])? $stage:ident = $name:literal in $field:ident,)+) => {
        named! {
            /// A part of the time that a request takes.
            #[derive(Default, PartialOrd, Ord)]
            pub enum Stage: "stage" {
                $($(#[doc = $doc])* $(#[$default])? $stage = $name,)+
            }
        }

        /// A value for each stage.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct PerStage<T> {
            $($(#[doc = $doc])* pub $field: T,)+
        }

        impl<T> PerStage<T> {
            /// The value that `of` has for each stage.
            pub fn from_fn(mut of: impl FnMut(Stage) -> T) -> Self {
                Self { $($field: of(Stage::$stage),)+ }
            }

            /// Each stage with its value, in the order of [`Stage::ALL`].
            pub fn iter(&self) -> impl Iterator<Item = (Stage, &T)> {
                [$((Stage::$stage, &self.$field)),+].into_iter()
            }
        }

        impl<T> Index<Stage> for PerStage<T> {
            type Output = T;

            fn index(&self, stage: Stage) -> &T {
                match stage {
                    $(Stage::$stage => &self.$field,)+
                }
            }
        }

        impl<T> IndexMut<Stage> for PerStage<T> {
            fn index_mut(&mut self, stage: Stage) -> &mut T {
                match stage {
                    $(Stage::$stage => &mut self.$field,)+
                }
            }
        }
    };
}

stages! {
    /// From the engine's stamp to the start of the request in the block layer: file system, limits of control groups,
    /// throttled writeback, waiting for a tag.
    [default] Admission = "admission" in admission,
    /// From there to the last issue to the device: the scheduler's queue.
    Queue = "queue" in queue,
    /// From there to its completion.
    Device = "device" in device,
    /// From there to the engine's stamp.
    Delivery = "delivery" in delivery,
    /// Of delivery: until the thread is woken, by the interrupt and what handles it.
    Completion = "completion" in completion,
    /// Of delivery: from there until the thread runs.
    CpuWait = "cpu-wait" in cpu_wait,
    /// Of delivery: from there to the engine's stamp.
    Reaping = "reaping" in reaping,
}

impl Stage {
    /// The stages whose times add up to that of the request.
    pub const WHOLE: [Self; 4] = [Self::Admission, Self::Queue, Self::Device, Self::Delivery];
}

/// What tracing counted in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceCounts {
    /// Requests whose events were found, all of them.
    pub joined: u64,
    /// Requests that miss some.
    pub unjoined: u64,
    /// Joined requests that were several to the device.
    pub split: u64,
    /// Requests of others, to the same devices.
    pub others: u64,
    /// Flushes of the devices' caches, whoever caused them.
    pub flushes: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
}

impl TraceCounts {
    /// Greatest share of unjoined requests at which the others stand for all.
    pub const UNJOINED_MAX: f64 = 0.001;

    /// The share of requests that miss events; 0 without requests.
    pub fn unjoined_share(&self) -> f64 {
        self.unjoined as f64 / (self.joined + self.unjoined).max(1) as f64
    }
}

/// What tracing showed of a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traced {
    /// What it counted.
    pub counts: TraceCounts,
    /// Why there are no stages, or not all, or not of all requests; empty where there are.
    pub note: String,
    /// The stages of the joined requests; `None` where they do not stand for all.
    pub stages: Option<StageTimes>,
}

/// The stages of many requests.
#[derive(Debug, Clone, PartialEq)]
pub struct StageTimes {
    /// How long each stage took, ns, by request; `None` for a stage that cannot be seen.
    pub histograms: PerStage<Option<LatencyHistogram>>,
    /// Its mean over the slowest requests, ns: those that took at least the 99th percentile of all.
    pub tail_means_ns: PerStage<f64>,
}

/// Share of requests that are faster than those of the tail.
const TAIL_FROM: f64 = 0.99;

impl StageTimes {
    /// Of requests, each with the time of each stage in ns, 0 of stages that cannot be seen; `None` without requests. The time of a
    /// request is the sum over [`Stage::WHOLE`].
    pub fn of(requests: &[PerStage<u64>], is_seen: impl Fn(Stage) -> bool) -> Option<Self> {
        let whole = |request: &PerStage<u64>| -> u64 {
            Stage::WHOLE.iter().map(|stage| request[*stage]).sum()
        };
        let mut slowest: Vec<&PerStage<u64>> = requests.iter().collect();
        let last = slowest.len().checked_sub(1)?;
        let from = ((slowest.len() as f64 * TAIL_FROM).ceil() as usize)
            .saturating_sub(1)
            .min(last);
        slowest.select_nth_unstable_by_key(from, |request| whole(request));
        let tail = &slowest[from..];
        let mean = |stage| {
            tail.iter()
                .map(|request| request[stage] as f64)
                .sum::<f64>()
                / tail.len() as f64
        };
        let histogram = |stage| {
            is_seen(stage).then(|| {
                let mut histogram = new_latency_histogram();
                requests
                    .iter()
                    .for_each(|request| histogram.saturating_record(request[stage]));
                histogram
            })
        };
        Some(Self {
            histograms: PerStage::from_fn(histogram),
            tail_means_ns: PerStage::from_fn(mean),
        })
    }
}

/// A stage in a few numbers, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageSummary {
    /// Its mean.
    pub mean_ns: f64,
    /// Its median.
    pub p50_ns: u64,
    /// Its 99th percentile.
    pub p99_ns: u64,
    /// Its mean over the slowest requests: those that took at least the 99th percentile of all.
    pub tail_mean_ns: f64,
}

/// What tracing showed of a trial, in a few numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSummary {
    /// What it counted.
    pub counts: TraceCounts,
    /// Why there are no stages, or not all, or not of all requests; empty where there are.
    pub note: String,
    /// The stages of the joined requests; `None` for those that are not known.
    pub stages: PerStage<Option<StageSummary>>,
}

impl Traced {
    /// In a few numbers.
    pub fn summary(&self) -> TraceSummary {
        let stages = self.stages.as_ref().map(StageTimes::summary);
        TraceSummary {
            counts: self.counts,
            note: self.note.clone(),
            stages: stages.unwrap_or_default(),
        }
    }
}

impl StageTimes {
    /// In a few numbers.
    pub fn summary(&self) -> PerStage<Option<StageSummary>> {
        PerStage::from_fn(|stage| {
            let histogram = self.histograms[stage].as_ref()?;
            Some(StageSummary {
                mean_ns: histogram.mean(),
                p50_ns: histogram.value_at_quantile(0.5),
                p99_ns: histogram.value_at_quantile(0.99),
                tail_mean_ns: self.tail_means_ns[stage],
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_slowest_requests() {
        // 199 requests of 10 us in the device, and 1 that waited 990 us for a CPU after it.
        let fast = PerStage {
            device: 10_000,
            ..PerStage::default()
        };
        let slow = PerStage {
            device: 10_000,
            delivery: 990_000,
            cpu_wait: 990_000,
            ..PerStage::default()
        };
        let mut requests = vec![fast; 199];
        requests.push(slow);
        let times = StageTimes::of(&requests, |stage| stage != Stage::Queue).expect("requests");
        // The slowest 1 % are three of 200: from the 198th on.
        let tail = times.tail_means_ns;
        assert_eq!(
            (tail.device, tail.delivery, tail.cpu_wait),
            (10_000.0, 330_000.0, 330_000.0)
        );
        let summary = times.summary();
        assert_eq!(summary.queue, None);
        assert_eq!(summary.delivery.map(|delivery| delivery.p50_ns), Some(0));
        assert_eq!(StageTimes::of(&[], |_| true), None);
    }
}
