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
        /// Writes from a purged device on until they are steady.
        PtsWriteSaturation = "pts-wsat",
    }
}
