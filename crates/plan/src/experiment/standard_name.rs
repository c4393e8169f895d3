//! Tests of a standard that an experiment can follow; `standard.rs` says how far it does.

iolab_workload::named! {
    /// A test of the standard.
    pub enum Standard: "standard" {
        /// Random requests of eight sizes in seven mixes of reads and writes.
        PtsIops = "pts-iops",
        /// Sequential reads and writes.
        PtsThroughput = "pts-tp",
        /// Latency of single requests.
        PtsLatency = "pts-lat",
        /// The writes after it, for a histogram of their latency.
        PtsLatencyHistogram = "pts-lat-histogram",
        /// Writes from a purged device on until they are steady.
        PtsWriteSaturation = "pts-wsat",
        /// A mix of sizes over a skewed range, by requests in flight.
        PtsComposite = "pts-cbw",
        /// Sequential writes before and after random ones.
        PtsCrossStimulus = "pts-xsr",
        /// Random writes after the host was idle.
        PtsHostIdle = "pts-hir",
    }
}

impl Standard {
    /// Whether it repeats its cells in rounds until these are steady.
    pub(crate) fn has_rounds(self) -> bool {
        match self {
            Self::PtsIops
            | Self::PtsThroughput
            | Self::PtsLatency
            | Self::PtsWriteSaturation
            | Self::PtsComposite
            | Self::PtsHostIdle => true,
            Self::PtsLatencyHistogram | Self::PtsCrossStimulus => false,
        }
    }
}

iolab_workload::named! {
    /// An edition of the standard.
    #[derive(Default)]
    pub enum Edition: "edition" {
        /// Drives of servers: the whole device, without its volatile write cache.
        #[default]
        Enterprise = "enterprise",
        /// Drives of personal computers: a part of the device, with its write cache.
        Client = "client",
    }
}

impl Edition {
    /// Least share of the device that its tests use.
    pub(crate) fn active_range(self) -> f64 {
        match self {
            Self::Enterprise => 1.0,
            Self::Client => 0.75,
        }
    }

    /// Whether the volatile write cache of the device is on in its tests.
    pub(crate) fn has_write_cache(self) -> bool {
        match self {
            Self::Enterprise => false,
            Self::Client => true,
        }
    }
}
