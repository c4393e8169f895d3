//! An experiment as a job file, and a trial as options of fio.

use std::collections::BTreeMap;

use super::unsupported::{check, drops_at_each_pass};
use iolab_command::Written;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_workload::Error;
use iolab_workload::settings::CellSpec;
use iolab_workload::system_settings::Placement;
use iolab_workload::trial::{
    Advice, Arrivals, Backend, CacheState, FileLayout, Pattern, Rate, Sizes, SyncPolicy, TrialSpec,
};
use iolab_workload::units::counted;

/// The job file of an experiment, as [`job_file`].
pub(crate) fn write(
    mut experiment: Experiment,
    remark: Option<&str>,
) -> iolab_workload::Result<Written> {
    // As in fio; a run chooses otherwise.
    if !experiment.names("first_offset") {
        experiment.apply_set("first_offset=zero")?;
    }
    // The cells of all tools are the same jobs.
    if experiment.names("tool") {
        experiment.apply_set("tool=iolab")?;
    }
    job_file(&Plan::of_new_run(experiment, &OneProcess)?, remark)
}

/// The job file of a plan, each cell once, with a `remark` as a comment. Cells that fio cannot carry out alike are left out, with
/// the reason as a comment.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no cell is left.
pub fn job_file(plan: &Plan, remark: Option<&str>) -> iolab_workload::Result<Written> {
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
    Ok((text, left_out))
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
    if drops_at_each_pass(spec) {
        return Err("fio drops the page cache before each pass over the file, iolab before the trial only (bound the trial by bytes within one pass)".to_owned());
    }
    Ok(JobLines::of(spec))
}

/// A name that can stand in brackets.
fn section(name: &str) -> String {
    let plain = |c: char| !c.is_control() && !"[];#".contains(c);
    name.chars().filter(|c| plain(*c)).collect()
}

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
        let common = common(spec).into_iter();
        let common = common.map(|word| word.trim_start_matches("--").to_owned());
        let mut job = Self {
            lines: common.collect(),
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
    fn the_same(self) -> Result<Vec<String>, String> {
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

/// The settings common to all workers, as a job file has them too.
pub(crate) fn common(spec: &TrialSpec) -> Vec<String> {
    let mut words = vec![
        "--thread".to_owned(),
        "--group_reporting".to_owned(),
        format!("--ioengine={}", spec.backend),
        format!("--rw={}", order(spec)),
        format!("--iodepth={}", spec.depth),
        format!("--direct={}", u8::from(spec.cache == CacheState::Direct)),
        // iolab gives no advice, and fio knows these two.
        match spec.fadvise {
            Some(advice @ (Advice::Sequential | Advice::Random)) => {
                format!("--fadvise_hint={advice}")
            }
            _ => "--fadvise_hint=0".to_owned(),
        },
    ];
    words.extend(choices(spec).into_iter().map(str::to_owned));
    words.extend(sizes_and_pauses(spec));
    let every = spec.sync_every;
    match spec.sync {
        SyncPolicy::Each => words.push(format!("--fsync={every}")),
        SyncPolicy::Fdatasync => words.push(format!("--fdatasync={every}")),
        _ => {}
    }
    let wait = spec.batch.wait_for(spec.depth);
    if wait > 1 {
        words.push(format!("--iodepth_batch={wait}"));
        words.push(format!("--iodepth_batch_complete_min={wait}"));
    }
    match spec.pattern {
        Pattern::Zipf(_) | Pattern::Pareto(_) | Pattern::Normal(_) => {
            words.push(format!("--random_distribution={}", spec.pattern));
        }
        Pattern::Zoned(zones) => words.push(format!("--random_distribution=zoned:{zones}")),
        Pattern::Seq
        | Pattern::Strided
        | Pattern::Reverse
        | Pattern::Rand
        | Pattern::RandReplace => {}
    }
    if spec.reads() && spec.writes() {
        words.push(format!("--rwmixread={}", spec.read_percent));
    }
    if let Some(time) = spec.limit.time {
        words.push(format!("--runtime={}us", time.as_micros()));
        if spec.requests_bound().is_none() {
            words.push("--time_based".to_owned());
        }
    }
    words
}

/// Sizes of requests, their data, and pauses of threads.
fn sizes_and_pauses(spec: &TrialSpec) -> Vec<String> {
    let mut words = Vec::new();
    match &spec.bs_mix {
        None => words.push(format!("--bs={}", spec.bs)),
        Some(mix) => {
            let split = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}/{}", share.bytes, share.percent));
                shares.collect::<Vec<_>>().join(":")
            };
            let range = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}-{}", share.bytes, share.largest()));
                shares.collect::<String>()
            };
            words.push(match mix.has_ranges() {
                true => format!("--bsrange={},{}", range(&mix.reads), range(&mix.writes)),
                false => format!("--bssplit={},{}", split(&mix.reads), split(&mix.writes)),
            });
            let starts = [&mix.reads, &mix.writes].map(|sizes| sizes.start().unwrap_or(spec.bs));
            words.push(match starts {
                [reads, writes] if reads != writes => format!("--blockalign={reads},{writes}"),
                [both, _] => format!("--blockalign={both}"),
            });
        }
    }
    if (1..100).contains(&spec.compressible) {
        words.push(format!(
            "--buffer_compress_percentage={}",
            spec.compressible
        ));
    }
    if let Some(think) = spec.thinktime {
        words.push(format!("--thinktime={}us", think.as_micros()));
    }
    words
}

/// Options that a trial gives or leaves out.
fn choices(spec: &TrialSpec) -> Vec<&'static str> {
    let ring = spec.backend == Backend::IoUring;
    let choices = [
        (spec.pattern.shares_region(), "--norandommap"),
        (
            spec.sync == SyncPolicy::End && spec.writes(),
            "--end_fsync=1",
        ),
        (spec.sync == SyncPolicy::Osync, "--sync=sync"),
        (spec.sync == SyncPolicy::Odsync, "--sync=dsync"),
        (spec.compressible == 100, "--zero_buffers"),
        (ring, "--fixedbufs"),
        (ring, "--registerfiles"),
        (ring && spec.sqpoll, "--sqthread_poll"),
        (spec.iopoll && spec.backend != Backend::Null, "--hipri"),
        (spec.latency, "--lat_percentiles=1"),
        (spec.latency, "--clat_percentiles=0"),
        (!spec.latency, "--gtod_reduce=1"),
    ];
    let given = choices.into_iter().filter(|(given, _)| *given);
    given.map(|(_, word)| word).collect()
}

/// `rw`: order and direction.
fn order(spec: &TrialSpec) -> String {
    let direction = match (spec.reads(), spec.writes()) {
        (true, false) => "read",
        (false, true) if !spec.writes_data() => "trim",
        (false, true) => "write",
        _ => "rw",
    };
    match spec.pattern {
        Pattern::Seq => direction.to_owned(),
        // From the end of a block back over it and the one before.
        Pattern::Reverse => format!("{direction}:-{}", 2 * spec.bs),
        Pattern::Strided => format!("{direction}:{}", spec.skip),
        Pattern::Rand
        | Pattern::RandReplace
        | Pattern::Zipf(_)
        | Pattern::Pareto(_)
        | Pattern::Normal(_)
        | Pattern::Zoned(_) => format!("rand{direction}"),
    }
}
