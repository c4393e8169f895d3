//! An experiment as a job file of fio: a job for each cell, or for each of its groups, the cells one after the other.

use std::collections::BTreeMap;

use iolab_plan::cells::Plan;
use iolab_workload::Error;
use iolab_workload::cpus::Placement;
use iolab_workload::quantity::counted;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Arrivals, Backend, CacheState, FileLayout, Rate, TrialSpec};

use super::unsupported::check;
use super::unsupported::{ReadUnit, drops_at_each_pass};
use super::words;

/// A job file, and what it lacks.
#[derive(Debug)]
pub struct WrittenJobs {
    /// The file.
    pub text: String,
    /// Cells that fio cannot carry out alike, a note for each reason.
    pub left_out: Vec<String>,
}

/// The job file of a plan, each cell once, with a `remark` as a comment. Cells that fio cannot carry out alike are left out, with
/// the reason as a comment.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no cell is left.
pub fn job_file(plan: &Plan, remark: Option<&str>) -> iolab_workload::Result<WrittenJobs> {
    let experiment = plan.experiment();
    let mut text = format!(
        "; {}: {}\n; The cells of this iolab experiment, each once, in the order of the plan. Run it with\n;   fio --output-format=json+ --output=result.json JOB.fio\n; and see the result with 'iolab import result.json'. iolab repeats each cell, in random order.\n",
        experiment.name, experiment.question
    );
    if let Some(remark) = remark {
        text.push_str(&format!("; {remark}\n"));
    }
    let cells = plan.cells();
    let is_paced = |cell: &CellSpec| cell.trials().iter().any(|trial| trial.rate.is_some());
    if cells.iter().any(|cell| is_paced(&cell.spec)) {
        text.push_str("; At a rate fio counts latency from the submission of a request, iolab from its scheduled start.\n");
    }
    let jobs: Vec<Result<Vec<Job>, String>> = cells.iter().map(|cell| jobs(&cell.spec)).collect();
    let left_out = left_out(&jobs);
    if jobs.iter().all(Result::is_err) {
        return Err(
            Error::usage(left_out.join("; ")).hint("'iolab run' measures these cells with iolab")
        );
    }
    let each = || jobs.iter().flatten().flatten();
    // fio reports the options of a job only if its section has any.
    let has_several = each().nth(1).is_some();
    let shared: Vec<String> = match each().next().filter(|_| has_several) {
        Some(first) => {
            let in_all = |line: &&String| each().all(|job| job.lines.contains(line));
            first.lines.iter().filter(in_all).cloned().collect()
        }
        None => Vec::new(),
    };
    let side_by_side = cells.iter().any(|cell| cell.spec.has_groups());
    text.push_str("\n[global]\n");
    if !side_by_side {
        text.push_str("stonewall\n");
    }
    text.push_str("new_group\n");
    for line in &shared {
        text.push_str(&format!("{line}\n"));
    }
    for (cell, jobs) in cells.iter().zip(&jobs) {
        let name = section(&plan.describe(cell));
        let jobs = match jobs {
            Ok(jobs) => jobs,
            Err(why) => {
                text.push_str(&format!("\n; left out: {name}: {why}\n"));
                continue;
            }
        };
        for (place, job) in jobs.iter().enumerate() {
            let own = job.group.as_ref().map(|group| format!("{group} ({name})"));
            text.push_str(&format!("\n[{}]\n", own.as_ref().unwrap_or(&name)));
            if side_by_side && place == 0 {
                text.push_str("stonewall\n");
            }
            for line in job.lines.iter().filter(|line| !shared.contains(line)) {
                text.push_str(&format!("{line}\n"));
            }
        }
    }
    Ok(WrittenJobs { text, left_out })
}

/// A note for each reason for which cells are left out.
fn left_out(jobs: &[Result<Vec<Job>, String>]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for why in jobs.iter().filter_map(|jobs| jobs.as_ref().err()) {
        *reasons.entry(why).or_default() += 1;
    }
    let all = counted(jobs.len() as u64, "cell");
    let notes = reasons.into_iter();
    notes
        .map(|(why, few)| format!("no job for {few} of {all}: {why}"))
        .collect()
}

/// A section of a job file.
struct Job {
    /// The group of the cell that it is.
    group: Option<String>,
    lines: Vec<String>,
}

/// The jobs that a cell is: one for each of its groups, which run side by side.
fn jobs(cell: &CellSpec) -> Result<Vec<Job>, String> {
    if !cell.has_groups() {
        let lines = job(&cell.trial)?.the_same()?;
        return Ok(vec![Job { group: None, lines }]);
    }
    cell.group_trials()
        .into_iter()
        .map(|group| {
            let name = &cell.groups[group.group as usize - 1].name;
            if group.follows && cell.last_end().is_none() {
                return Err(format!(
                    "{name} runs as long as groups whose end no time gives"
                ));
            }
            let lines = job(&group.trial).and_then(JobLines::the_same);
            let lines = lines.map_err(|why| format!("{name}: {why}"))?;
            Ok(Job {
                group: Some(name.clone()),
                lines,
            })
        })
        .collect()
}

/// The lines of a job, without its section.
fn job(spec: &TrialSpec) -> Result<JobLines, String> {
    // A rate needs options that only a job file has.
    let closed = TrialSpec {
        rate: None,
        ..spec.clone()
    };
    check(&closed)?;
    if spec.layout == FileLayout::Interleaved {
        return Err("fio cannot interleave the blocks of its threads".to_owned());
    }
    if drops_at_each_pass(spec, ReadUnit::BlockOfFiles) {
        return Err("fio drops the page cache before each pass over the file, iolab before the trial only (bound the trial by bytes within one pass)".to_owned());
    }
    Ok(JobLines::of(spec))
}

/// A name that can stand in brackets.
fn section(name: &str) -> String {
    let plain = |c: char| !c.is_control() && !"[];#".contains(c);
    name.chars().filter(|c| plain(*c)).collect()
}

/// Options of a command line for one trial that a job file does not need, or that are fio's default.
const OF_A_TRIAL: [&str; 5] = [
    "allow_file_create", "fallocate", "invalidate", "randrepeat", "randseed",
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
                self.differs(
                    "fio paces its reads and its writes each at a rate, iolab both together at one",
                );
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
