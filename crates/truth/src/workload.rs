//! The workload of a scenario, for iolab and fio.

use std::path::Path;

/// A single cell, the same for every tool.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Whether the program writes, which destroys an existing target's data, instead of reading.
    pub writes: bool,
    /// Whether offsets are random.
    pub random: bool,
    /// Whether the program uses a mapping of the file (mmap) instead of calls.
    pub mapped: bool,
    /// I/O size in a form that iolab and fio read.
    pub bs: &'static str,
    /// Cache state: `direct`, `cold` or `hot`.
    pub cache: &'static str,
    /// Sync mode: `none`, `end` or `each`.
    pub sync: &'static str,
    /// Number of workers.
    pub threads: u32,
    /// Whether iolab also measures a single worker, in a second cell.
    pub alone_too: bool,
    /// Size of the used region, with a suffix.
    pub region: &'static str,
    /// Whether a trial ends after one pass over the region.
    pub once: bool,
    /// Longest duration of one trial, ms.
    pub time_ms: u32,
    /// Number of measured trials.
    pub trials: u32,
    /// Whether zeros are written instead of incompressible data.
    pub zeros: bool,
    /// Whether written data is read back.
    pub verify: bool,
    /// Requests per second at intended starts; `None` for the closed loop.
    pub rate: Option<u32>,
    /// Response variable: `throughput` or `latency`.
    pub response: &'static str,
}

impl Workload {
    /// Direct sequential reads of 64 KiB by one worker, six trials of 100 ms.
    pub const READ: Self = Self {
        writes: false,
        random: false,
        mapped: false,
        bs: "64k",
        cache: "direct",
        sync: "none",
        threads: 1,
        alone_too: false,
        region: "32M",
        once: false,
        time_ms: 100,
        trials: 6,
        zeros: false,
        verify: false,
        rate: None,
        response: "throughput",
    };

    /// Direct sequential writes of 64 KiB by one worker, six trials of 100 ms.
    pub const WRITE: Self = Self {
        writes: true,
        ..Self::READ
    };

    /// Direct sequential reads of 4 KiB, with latency as the response.
    pub const LATENCY: Self = Self {
        bs: "4k",
        response: "latency",
        ..Self::READ
    };

    /// Name of the backend in iolab and fio.
    fn backend(&self) -> &'static str {
        if self.mapped { "mmap" } else { "psync" }
    }

    /// Experiment for iolab, as TOML.
    pub fn for_iolab(&self) -> String {
        let Self {
            bs,
            cache,
            sync,
            threads,
            region,
            time_ms,
            trials,
            verify,
            response,
            ..
        } = self;
        let reads = if self.writes { 0 } else { 100 };
        let pattern = if self.random { "rand" } else { "seq" };
        let threads_too = match self.alone_too {
            true => format!("threads = [{threads}, 1]\n"),
            false => String::new(),
        };
        let threads = match self.alone_too {
            true => String::new(),
            false => format!("threads = {threads}\n"),
        };
        let backend = self.backend();
        let compressible = if self.zeros { 100 } else { 0 };
        let bytes = if self.once { region } else { &"none" };
        let rate = self
            .rate
            .map_or(String::new(), |rate| format!("rate = {rate}\n"));
        // Ascending order, as with the other tools; some targets also fail at a known position.
        format!(
            "name = \"truth\"\nquestion = \"What is true of this target?\"\nresponse = \"{response}\"\n\
             [factors]\nbs = [\"{bs}\"]\n{threads_too}\
             [settings]\nbackend = \"{backend}\"\npattern = \"{pattern}\"\nread_percent = {reads}\ncache = \"{cache}\"\nsync = \"{sync}\"\n\
             first_offset = \"zero\"\ncompressible = {compressible}\n{threads}region = \"{region}\"\nbytes = \"{bytes}\"\n\
             time = \"{time_ms}ms\"\nverify = {verify}\n{rate}\
             [design]\ntrials_min = {trials}\ntrials_max = {trials}\nprecision = 0.5\nbudget = \"5min\"\n"
        )
    }

    /// Arguments of `fio` for a run of one second on a file or device.
    pub fn for_fio(&self, file: &Path) -> Vec<String> {
        let direction = match (self.random, self.writes) {
            (false, false) => "read",
            (false, true) => "write",
            (true, false) => "randread",
            (true, true) => "randwrite",
        };
        let flag = |on: bool| u8::from(on);
        let mut words = vec![
            "--name=truth".to_owned(),
            format!("--filename={}", file.display()),
            format!("--rw={direction}"),
            format!("--bs={}", self.bs),
            format!("--size={}", self.region),
            format!("--numjobs={}", self.threads),
            format!("--direct={}", flag(self.cache == "direct")),
            format!("--invalidate={}", flag(self.cache != "hot")),
            format!("--fsync={}", flag(self.sync == "each")),
            format!("--end_fsync={}", flag(self.sync == "end")),
        ];
        if self.zeros {
            words.push("--zero_buffers".to_owned());
        }
        if let Some(rate) = self.rate {
            words.push(format!("--rate_iops={rate}"));
        }
        if !self.once {
            words.push("--time_based".to_owned());
        }
        let seconds = self.time_ms.max(1000);
        words.push(format!("--runtime={seconds}ms"));
        words.push(format!("--ioengine={}", self.backend()));
        let fixed = ["--thread", "--group_reporting", "--output-format=json"];
        words.extend(fixed.map(str::to_owned));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_is_asked_follows_the_workload() {
        let asked = |workload: Workload| workload.for_fio(Path::new("/x")).join(" ");
        let reads = asked(Workload::READ);
        assert!(
            reads.contains("--rw=read ") && reads.contains("--direct=1"),
            "{reads}"
        );
        let writes = asked(Workload {
            random: true,
            sync: "end",
            rate: Some(9),
            ..Workload::WRITE
        });
        for words in [
            "--rw=randwrite", "--end_fsync=1", "--fsync=0", "--rate_iops=9",
        ] {
            assert!(writes.contains(words), "{writes}");
        }
    }
}
