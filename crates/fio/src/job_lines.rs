//! The options of a job for one trial or one of its groups, as lines of a job file.

use iolab_workload::cpus::Placement;
use iolab_workload::trial::{Arrivals, Backend, CacheState, FileLayout, Rate, TrialSpec};

use super::words;

/// Options of a command line for one trial that a job file does not need, or that are fio's default.
const OF_A_TRIAL: [&str; 6] = [
    "allow_file_create", "fallocate", "invalidate", "randrepeat", "randseed", "lat_percentiles",
];
/// The file that the jobs share; it is made if it is not there.
const FILE: &str = "iolab.fio.tmp";

/// The options of a job, and the differences that remain.
pub(crate) struct JobLines {
    /// Each as `NAME` or `NAME=VALUE`.
    pub(crate) lines: Vec<String>,
    /// Differences of fio that follow from values without an option.
    differences: Vec<String>,
}

impl JobLines {
    /// The lines of a trial. [`check`](super::unsupported::check) names everything that fio cannot do at all.
    pub(crate) fn of(spec: &TrialSpec) -> Self {
        let common = words::common(spec).into_iter();
        let common = common.map(|word| word.trim_start_matches("--").to_owned());
        let is_needed = |line: &String| {
            let name = line.split('=').next().unwrap_or(line);
            !OF_A_TRIAL.contains(&name)
        };
        let mut job = Self {
            lines: common.filter(is_needed).collect(),
            differences: Vec::new(),
        };
        job.processors(spec);
        job.place(spec);
        job.rate(spec);
        if spec.cache == CacheState::Hot {
            job.add("invalidate=0");
            job.add("pre_read=1");
        }
        if spec.writes() {
            // iolab writes over its own fill.
            job.add("overwrite=1");
        }
        job
    }

    /// The lines, unless something is not the same with them: then what.
    pub(crate) fn the_same(self) -> Result<Vec<String>, String> {
        match self.differences.into_iter().next() {
            None => Ok(self.lines),
            Some(difference) => Err(difference),
        }
    }

    fn add(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn differs(&mut self, how: impl Into<String>) {
        self.differences.push(how.into());
    }

    /// The share of each thread.
    fn shared_by(&mut self, threads: u32, all: u64, what: &str) -> u64 {
        let threads = u64::from(threads.max(1));
        if !all.is_multiple_of(threads) {
            self.differs(format!("its threads have {what} of different sizes"));
        }
        all / threads
    }

    /// Adds the CPUs of its threads.
    fn processors(&mut self, spec: &TrialSpec) {
        self.add(format!("numjobs={}", spec.threads));
        if let Some(cpus) = &spec.cpus {
            self.add(format!("cpus_allowed={cpus}"));
        }
        match (spec.placement, &spec.cpus) {
            (Placement::Float, _) => {}
            (Placement::Packed, Some(_)) => self.add("cpus_allowed_policy=split"),
            (placement, _) => self.differs(format!(
                "fio gives threads the CPUs of a list in turn, and has no placement={placement} without one"
            )),
        }
    }

    /// Adds the part of the file that the threads visit, and the limit.
    fn place(&mut self, spec: &TrialSpec) {
        if spec.layout != FileLayout::Private {
            self.add(format!("filename={FILE}"));
        }
        let size = match spec.parts_region() {
            true => {
                let blocks = spec.region / spec.bs.max(1);
                self.shared_by(spec.threads, blocks, "shares") * spec.bs
            }
            false => spec.region,
        };
        self.add(format!("offset={}", spec.offset));
        self.add(format!("size={size}"));
        if spec.parts_region() && spec.layout != FileLayout::Private && spec.threads > 1 {
            self.add(format!("offset_increment={size}"));
        }
        let mut bound = |all| self.shared_by(spec.threads, all, "bounds");
        let bound = match (spec.bytes_bound(), spec.requests_bound()) {
            (Some(bytes), _) => format!("io_size={}", bound(bytes)),
            (None, Some(requests)) => {
                format!("io_size={}", bound(requests).saturating_mul(spec.bs))
            }
            (None, None) => return,
        };
        self.add(bound);
    }

    /// The rate of each thread.
    fn rate(&mut self, spec: &TrialSpec) {
        let Some(rate) = spec.rate else {
            return;
        };
        let threads = u64::from(spec.threads.max(1));
        let (name, all) = match rate {
            Rate::Requests(requests) => ("rate_iops", requests),
            Rate::Bytes(bytes) => ("rate", bytes),
        };
        if !all.is_multiple_of(threads) {
            self.differs("its threads have rates that differ");
        }
        let each = all / threads;
        match spec.reads() && spec.writes() {
            false => self.add(format!("{name}={each}")),
            true => {
                self.differs("fio has a rate for its reads and one for its writes");
                let reads = each * u64::from(spec.read_percent) / 100;
                self.add(format!("{name}={reads},{}", each - reads));
            }
        }
        if spec.backend != Backend::IoUring {
            // A request does not wait for earlier ones. fio has no such mode for rings.
            self.add("io_submit_mode=offload");
        }
        if spec.arrivals == Arrivals::Poisson {
            self.add("rate_process=poisson");
        }
    }
}
