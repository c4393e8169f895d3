//! An experiment as a job file of fio: a job for each cell, or for each of its groups, the cells one after the other.

use iolab_plan::cells::Plan;
use iolab_workload::cpus::Placement;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Arrivals, Backend, CacheState, FileLayout, Rate, TrialSpec};

use super::between_passes::{ReadUnit, drops_at_each_pass};
use super::unsupported::check;
use super::words;

/// Options of a command line for one trial that a job file does not need, or that are fio's default.
const OF_A_TRIAL: [&str; 6] = [
    "allow_file_create",
    "fallocate",
    "invalidate",
    "randrepeat",
    "randseed",
    "lat_percentiles",
];
/// The file that the jobs share; it is made if it is not there.
const FILE: &str = "iolab.fio.tmp";

/// The job file of a plan, each cell once. Cells that fio cannot carry out alike are left out, with the reason as a comment.
pub fn job_file(plan: &Plan) -> String {
    let experiment = plan.experiment();
    let mut text = format!(
        "; {}: {}\n; The cells of this iolab experiment, each once, in the order of the plan. Run it with\n;   fio --output-format=json+ --output=result.json JOB.fio\n; and see the result with 'iolab import result.json'. iolab repeats each cell, in random order.\n",
        experiment.name, experiment.question
    );
    let cells = plan.cells();
    let is_paced = |cell: &CellSpec| cell.trials().iter().any(|trial| trial.rate.is_some());
    if cells.iter().any(|cell| is_paced(&cell.spec)) {
        text.push_str("; At a rate fio counts latency from the submission of a request, iolab from its scheduled start.\n");
    }
    let exits = cells.iter().any(|cell| ends_all(&cell.spec));
    let jobs: Vec<Result<Vec<Job>, String>> = cells
        .iter()
        .enumerate()
        .map(|(number, cell)| jobs(&cell.spec, number, exits))
        .collect();
    let each = || jobs.iter().flatten().flatten();
    let shared: Vec<String> = match each().next() {
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
    text
}

/// A section of a job file.
struct Job {
    /// The group of the cell that it is.
    group: Option<String>,
    lines: Vec<String>,
}

/// Whether a group ends all that run beside it.
fn ends_all(cell: &CellSpec) -> bool {
    cell.has_groups() && cell.active().any(|group| group.spec.trial.ends_trial)
}

/// The jobs that a cell, which has this number, is: one for each of its groups, which run side by side. `exits` is whether a
/// job of the file ends others: then every job of fio ends its own clones.
fn jobs(cell: &CellSpec, number: usize, exits: bool) -> Result<Vec<Job>, String> {
    let is_timed =
        |trial: &TrialSpec| trial.limit.time.is_some() && trial.requests_bound().is_none();
    let may_be_cut = |trial: &TrialSpec| exits && trial.threads > 1 && !is_timed(trial);
    if !cell.has_groups() {
        let lines = job(&cell.trial)?;
        return Ok(vec![Job { group: None, lines }]);
    }
    let groups = cell.group_trials();
    let flows = groups.iter().filter(|group| group.trial.flow.is_some());
    // A proportion takes two.
    let has_flows = flows.count() > 1;
    groups
        .into_iter()
        .map(|group| {
            let name = &cell.groups[group.group as usize - 1].name;
            if group.follows && cell.last_end().is_none() {
                return Err(format!(
                    "{name} runs as long as groups whose end no time gives"
                ));
            }
            if !group.ends && may_be_cut(&group.trial) {
                return Err(format!(
                    "{name}: exitall of another job ends all its threads with the first one"
                ));
            }
            let mut lines = job(&group.trial).map_err(|why| format!("{name}: {why}"))?;
            let delay = group.trial.start_delay;
            if !delay.is_zero() {
                lines.push(format!("startdelay={}us", delay.as_micros()));
            }
            if group.ends {
                lines.extend(["exitall", "exit_what=stonewall"].map(str::to_owned));
            }
            if let Some(weight) = group.trial.flow.filter(|_| has_flows) {
                let threads = group.trial.threads;
                if weight % threads != 0 {
                    return Err(format!(
                        "{name}: its flow={weight} is not a multiple of its {threads} threads, and fio gives each of them the weight"
                    ));
                }
                lines.push(format!("flow={}", weight / threads));
                // fio counts the jobs of one flow over the whole file, also those that have not begun.
                lines.push(format!("flow_id={number}"));
            }
            Ok(Job {
                group: Some(name.clone()),
                lines,
            })
        })
        .collect()
}

/// The lines of a job, without its section.
fn job(spec: &TrialSpec) -> Result<Vec<String>, String> {
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
    let mut lines: Vec<String> = words::common(spec)
        .into_iter()
        .map(|word| word.trim_start_matches("--").to_owned())
        .filter(|line| {
            let name = line.split('=').next().unwrap_or(line);
            !OF_A_TRIAL.contains(&name)
        })
        .collect();
    lines.extend(place(spec)?);
    lines.extend(rate_and_pauses(spec)?);
    if spec.cache == CacheState::Hot {
        lines.extend(["invalidate=0".to_owned(), "pre_read=1".to_owned()]);
    }
    if spec.writes() {
        // iolab writes over what it has filled.
        lines.push("overwrite=1".to_owned());
    }
    Ok(lines)
}

/// The rate of each thread.
fn rate_and_pauses(spec: &TrialSpec) -> Result<Vec<String>, String> {
    let Some(rate) = spec.rate else {
        return Ok(Vec::new());
    };
    if spec.reads() && spec.writes() {
        return Err("fio has a rate for its reads and one for its writes".to_owned());
    }
    let threads = u64::from(spec.threads);
    let (name, all) = match rate {
        Rate::Requests(requests) => ("rate_iops", requests),
        Rate::Bytes(bytes) => ("rate", bytes),
    };
    if !all.is_multiple_of(threads) {
        return Err("its threads have rates that differ".to_owned());
    }
    let mut lines = vec![format!("{name}={}", all / threads)];
    if spec.backend != Backend::IoUring {
        // A request does not wait for those before it. fio has no such mode for rings.
        lines.push("io_submit_mode=offload".to_owned());
    }
    if spec.arrivals == Arrivals::Poisson {
        lines.push("rate_process=poisson".to_owned());
    }
    Ok(lines)
}

/// Which part of which file the threads go over, and how far.
fn place(spec: &TrialSpec) -> Result<Vec<String>, String> {
    let threads = u64::from(spec.threads);
    let even = |what: u64, of: &str| match what.is_multiple_of(threads) {
        true => Ok(what / threads),
        false => Err(format!("its threads have {of} of different sizes")),
    };
    let mut lines = vec![format!("numjobs={threads}")];
    match (spec.placement, &spec.cpus) {
        (Placement::Float, None) => {}
        (Placement::Float, Some(cpus)) => lines.push(format!("cpus_allowed={cpus}")),
        (Placement::Packed, Some(cpus)) => {
            lines.push(format!("cpus_allowed={cpus}"));
            lines.push("cpus_allowed_policy=split".to_owned());
        }
        (placement, _) => {
            return Err(format!(
                "fio gives threads the CPUs of a list in turn, and has no placement={placement} without one"
            ));
        }
    }
    if spec.layout != FileLayout::Private {
        lines.push(format!("filename={FILE}"));
    }
    let size = match spec.parts_region() {
        true => even(spec.region / spec.bs, "shares")? * spec.bs,
        false => spec.region,
    };
    lines.push(format!("offset={}", spec.offset));
    lines.push(format!("size={size}"));
    if spec.parts_region() && spec.layout != FileLayout::Private && threads > 1 {
        lines.push(format!("offset_increment={size}"));
    }
    if let Some(bytes) = spec.bytes_bound() {
        lines.push(format!("io_size={}", even(bytes, "bounds")?));
    } else if let Some(bound) = spec.requests_bound().filter(|_| spec.bs_mix.is_some()) {
        lines.push(format!("number_ios={}", even(bound, "bounds")?));
    } else if let Some(bound) = spec.requests_bound() {
        lines.push(format!("io_size={}", even(bound, "bounds")? * spec.bs));
    }
    Ok(lines)
}

/// A name that can stand in brackets.
fn section(name: &str) -> String {
    let plain = |c: char| !c.is_control() && !"[];#".contains(c);
    name.chars().filter(|c| plain(*c)).collect()
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::{OneProcess, cells};
    use iolab_plan::experiment::Experiment;
    use iolab_workload::settings::CellSpec;

    use super::*;
    use crate::job::JobFile;

    fn plan(name: &str, sets: &[&str]) -> Plan {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("valid");
        }
        Plan::of(experiment, &OneProcess).expect("a plan")
    }

    #[test]
    fn what_is_written_reads_as_the_same_cells() {
        for (name, sets) in [
            ("read-random", &["bs=4k,64k,1M"][..]),
            ("write-size", &["bs=4k,1M", "sync=none,each,odsync,end"]),
            (
                "disk-grid",
                &["bs=4k,64k", "threads=1,4", "region=64M", "bytes=64M"],
            ),
            (
                "read-random",
                &[
                    "bs=4k",
                    "backend=io_uring",
                    "depth=1,32",
                    "batch=one",
                    "layout=overlapping",
                    "threads=2",
                ],
            ),
            (
                "read-random",
                &["bs=4k", "cache=cold", "region=1M", "bytes=1M"],
            ),
            ("load-latency", &["rate=1000,2000", "time=1s"]),
            ("interference", &["writer.rate=0,50MB/s,none"]),
            (
                "interference",
                &["writer.rate=none", "writer.start_delay=250ms"],
            ),
            (
                "interference",
                &[
                    "writer.rate=none",
                    "reader.rate=none",
                    "reader.arrivals=constant",
                    "reader.bs=4k,16k",
                    "writer.flow=1",
                    "reader.flow=8",
                ],
            ),
            (
                "interference",
                &["writer.rate=none,50MB/s", "reader.ends_trial=true"],
            ),
            (
                "read-size",
                &[
                    "bs=64k",
                    "region=10M",
                    "pattern=strided",
                    "skip_every=1M",
                    "skip=3M",
                    "bytes=3M",
                ],
            ),
        ] {
            let plan = plan(name, sets);
            let text = job_file(&plan);
            let file = JobFile::parse(&text, "again").expect(&text);
            let again = cells(&file.experiment).expect("cells");
            let bare = |trial: TrialSpec| TrialSpec {
                // The defaults of fio that no cell can say.
                registered: false,
                ..trial
            };
            let bare = |cell: &CellSpec| -> Vec<TrialSpec> {
                match cell.has_groups() {
                    true => {
                        let groups = cell.group_trials().into_iter();
                        groups.map(|group| bare(group.trial)).collect()
                    }
                    false => vec![bare(cell.trial.clone())],
                }
            };
            let mut wanted: Vec<Vec<TrialSpec>> =
                plan.cells().iter().map(|cell| bare(&cell.spec)).collect();
            for cell in again {
                let spec = bare(&cell.spec);
                let place = wanted.iter().position(|wanted| *wanted == spec);
                wanted.remove(place.unwrap_or_else(|| panic!("{spec:?} in {wanted:#?}\n{text}")));
            }
            assert!(wanted.is_empty(), "{wanted:?}");
        }
    }

    /// Where a pass begins is nothing that requests at random have.
    #[test]
    fn random_requests_are_written_wherever_an_ordered_pass_would_begin() {
        let left_out = |name: &str| {
            let text = job_file(&plan(name, &["bs=4k", "first_offset=random"]));
            text.contains("; left out: ")
        };
        assert!(!left_out("read-random"));
        assert!(left_out("read-size"));
    }

    #[test]
    fn what_fio_would_do_otherwise_is_left_out_with_its_reason() {
        let told = [
            ("load-latency", &["rate=1000,2000", "read_percent=50"][..]),
            ("read-random", &["bs=4k,8k", "cache=cold", "bytes=none"]),
            (
                "interference",
                &["writer.rate=none,50MB/s", "reader.pattern=reverse"],
            ),
            (
                "interference",
                &[
                    "writer.rate=none",
                    "reader.rate=none",
                    "reader.arrivals=constant",
                    "reader.bs=4k,16k",
                    "writer.flow=1",
                    "reader.flow=3",
                    "reader.threads=2",
                ],
            ),
            (
                "interference",
                &[
                    "writer.rate=none,50MB/s",
                    "reader.ends_trial=true",
                    "writer.threads=2",
                    "writer.time=none",
                    "writer.bytes=1G",
                ],
            ),
            (
                "read-size",
                &[
                    "bs=64k,128k",
                    "region=10M",
                    "pattern=strided",
                    "skip_every=1M",
                    "skip=3M",
                    "bytes=4M",
                ],
            ),
        ]
        .map(|(name, sets)| {
            let text = job_file(&plan(name, sets));
            let left_out = text.lines().filter(|line| line.starts_with("; left out: "));
            // Two cells each, for one reason.
            let reasons: Vec<&str> = left_out.collect();
            assert_eq!(reasons.len(), 2, "{text}");
            reasons.join("\n")
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        ; left out: rate=1000: fio has a rate for its reads and one for its writes
        ; left out: rate=2000: fio has a rate for its reads and one for its writes
        ; left out: bs=4KiB: fio drops the page cache before each pass over the file, iolab before the trial only (bound the trial by bytes within one pass)
        ; left out: bs=8KiB: fio drops the page cache before each pass over the file, iolab before the trial only (bound the trial by bytes within one pass)
        ; left out: writer.rate=none: reader: its backward reads wrap at the end of the file, not of the region
        ; left out: writer.rate=50MB/s: reader: its backward reads wrap at the end of the file, not of the region
        ; left out: reader.bs=4KiB: reader: its flow=3 is not a multiple of its 2 threads, and fio gives each of them the weight
        ; left out: reader.bs=16KiB: reader: its flow=3 is not a multiple of its 2 threads, and fio gives each of them the weight
        ; left out: writer.rate=none: writer: exitall of another job ends all its threads with the first one
        ; left out: writer.rate=50MB/s: writer: exitall of another job ends all its threads with the first one
        ; left out: bs=64KiB: at the end of a strided pass it reads the same blocks again, where iolab takes those between (bound the trial by bytes within one pass)
        ; left out: bs=128KiB: at the end of a strided pass it reads the same blocks again, where iolab takes those between (bound the trial by bytes within one pass)
        ");
    }
}
