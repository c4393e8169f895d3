//! An experiment as a job file of fio: a job for each cell, one after the other.

use iolab_plan::cells::Plan;
use iolab_spec::cpus::Placement;
use iolab_spec::trial::{CacheState, Layout, TrialSpec};

use super::command;

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
    let jobs: Vec<Result<Vec<String>, String>> = plan
        .cells()
        .iter()
        .map(|cell| match cell.spec.has_groups() {
            true => Err("its groups run side by side, and iolab writes no such jobs".to_owned()),
            false => job(&cell.spec.trial),
        })
        .collect();
    let shared: Vec<String> = match jobs.iter().flatten().next() {
        Some(first) => {
            let in_all = |line: &&String| jobs.iter().flatten().all(|job| job.contains(line));
            first.iter().filter(in_all).cloned().collect()
        }
        None => Vec::new(),
    };
    text.push_str("\n[global]\nstonewall\nnew_group\n");
    for line in &shared {
        text.push_str(&format!("{line}\n"));
    }
    for (cell, job) in plan.cells().iter().zip(jobs) {
        let name = section(&plan.describe(cell));
        match job {
            Ok(lines) => {
                text.push_str(&format!("\n[{name}]\n"));
                for line in lines.iter().filter(|line| !shared.contains(line)) {
                    text.push_str(&format!("{line}\n"));
                }
            }
            Err(why) => text.push_str(&format!("\n; left out: {name}: {why}\n")),
        }
    }
    text
}

/// The lines of a job, without its section.
fn job(spec: &TrialSpec) -> Result<Vec<String>, String> {
    command::check(spec)?;
    if spec.layout == Layout::Interleaved {
        return Err("fio cannot interleave the blocks of its threads".to_owned());
    }
    let mut lines: Vec<String> = command::common(spec)
        .into_iter()
        .map(|word| word.trim_start_matches("--").to_owned())
        .filter(|line| {
            let name = line.split('=').next().unwrap_or(line);
            !OF_A_TRIAL.contains(&name)
        })
        .collect();
    lines.extend(place(spec)?);
    if spec.cache == CacheState::Hot {
        lines.extend(["invalidate=0".to_owned(), "pre_read=1".to_owned()]);
    }
    if spec.writes() {
        // iolab writes over what it has filled.
        lines.push("overwrite=1".to_owned());
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
    if spec.layout != Layout::Private {
        lines.push(format!("filename={FILE}"));
    }
    let size = match spec.parts_region() {
        true => even(spec.region / spec.bs, "shares")? * spec.bs,
        false => spec.region,
    };
    lines.push(format!("offset={}", spec.offset));
    lines.push(format!("size={size}"));
    if spec.parts_region() && spec.layout != Layout::Private && threads > 1 {
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
    use iolab_plan::cells::cells;
    use iolab_plan::experiment::Experiment;
    use iolab_spec::settings::CellSpec;

    use super::*;
    use crate::peer::fio::job::JobFile;

    fn plan(name: &str, sets: &[&str]) -> Plan {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("valid");
        }
        Plan::of(experiment).expect("a plan")
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
        ] {
            let plan = plan(name, sets);
            let text = job_file(&plan);
            assert!(!text.contains("left out"), "{text}");
            let file = JobFile::parse(&text, "again").expect(&text);
            let again = cells(&file.experiment).expect("cells");
            let bare = |spec: &CellSpec| TrialSpec {
                // The defaults of fio that no cell can say.
                registered: false,
                ..spec.trial.clone()
            };
            let mut wanted: Vec<TrialSpec> =
                plan.cells().iter().map(|cell| bare(&cell.spec)).collect();
            for cell in again {
                let spec = bare(&cell.spec);
                let place = wanted.iter().position(|wanted| *wanted == spec);
                wanted.remove(place.unwrap_or_else(|| panic!("{spec:?} in {wanted:#?}\n{text}")));
            }
            assert!(wanted.is_empty(), "{wanted:?}");
        }
    }

    #[test]
    fn what_fio_would_do_otherwise_is_left_out_with_its_reason() {
        let text = job_file(&plan("load-latency", &["rate=1000,2000"]));
        assert_eq!(text.matches("; left out: rate=").count(), 2, "{text}");
    }
}
