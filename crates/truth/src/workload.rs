//! What is asked of a target, in words that iolab and fio both understand.

use std::path::Path;

/// One cell: the same for every tool.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Whether it writes instead of reading; an existing target's data is destroyed then.
    pub writes: bool,
    /// Whether offsets are random.
    pub random: bool,
    /// I/O size, as iolab and fio read it.
    pub bs: &'static str,
    /// `direct`, `cold` or `hot`.
    pub cache: &'static str,
    /// `none`, `end` or `each`.
    pub sync: &'static str,
    /// Workers.
    pub threads: u32,
    /// Bytes of the target in use.
    pub region: &'static str,
    /// Longest duration of one trial, ms.
    pub time_ms: u32,
    /// Measured trials.
    pub trials: u32,
    /// Whether zeros are written instead of incompressible data.
    pub zeros: bool,
    /// Requests per second at intended starts; `None` for one after the other.
    pub rate: Option<u32>,
}

impl Workload {
    /// Direct sequential reads of 64 KiB by one worker, six trials of 100 ms.
    pub const READ: Self = Self {
        writes: false,
        random: false,
        bs: "64k",
        cache: "direct",
        sync: "none",
        threads: 1,
        region: "32M",
        time_ms: 100,
        trials: 6,
        zeros: false,
        rate: None,
    };

    /// The same, written.
    pub const WRITE: Self = Self { writes: true, ..Self::READ };

    /// The words behind `iolab`.
    pub fn for_iolab(&self, target: &Path, run_file: &Path) -> Vec<String> {
        let experiment = if self.writes { "write-size" } else { "read-size" };
        let pattern = if self.random { "rand" } else { "seq" };
        let content = if self.zeros { "zero" } else { "unique" };
        let mut words = vec!["run".to_owned(), experiment.to_owned(), target.display().to_string()];
        words.extend(["-o".to_owned(), run_file.display().to_string()]);
        for (name, value) in [
            ("bs", self.bs),
            ("pattern", pattern),
            ("cache", self.cache),
            ("sync", self.sync),
            ("content", content),
            ("bytes", "none"),
            ("trials_min", &self.trials.to_string()),
            ("trials_max", &self.trials.to_string()),
        ] {
            words.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        for (option, value) in [
            ("--size", self.region.to_owned()),
            ("--threads", self.threads.to_string()),
            ("--time", format!("{}ms", self.time_ms)),
            ("--budget", "5min".to_owned()),
            ("--seed", "7".to_owned()),
        ] {
            words.extend([option.to_owned(), value]);
        }
        if self.writes {
            words.push("--destroy-data".to_owned());
        }
        words
    }

    /// The words behind `fio`, for one run of a second on a file or device.
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
            format!("--invalidate={}", flag(self.cache == "cold")),
            format!("--fsync={}", flag(self.sync == "each")),
            format!("--end_fsync={}", flag(self.sync == "end")),
        ];
        if self.zeros {
            words.push("--zero_buffers".to_owned());
        }
        if let Some(rate) = self.rate {
            words.push(format!("--rate_iops={rate}"));
        }
        let fixed = [
            "--ioengine=psync",
            "--thread",
            "--time_based",
            "--runtime=1s",
            "--group_reporting",
            "--output-format=json",
        ];
        words.extend(fixed.map(str::to_owned));
        words
    }
}
