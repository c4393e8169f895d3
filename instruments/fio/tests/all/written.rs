//! Experiments as job files, and read back.

use iolab_fio::job::parse;
use iolab_fio::write_job::job_file;
use iolab_plan::cells::{OneProcess, Plan, cells};
use iolab_plan::experiment::Experiment;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{FirstOffset, TrialSpec};

use crate::line_files::check;

fn plan(line: &str) -> Plan {
    let mut words = line.split(' ');
    let mut experiment = Experiment::find(words.next().expect("a name")).expect("built in");
    for set in words {
        experiment.apply_set(set).expect(set);
    }
    Plan::of(experiment, &OneProcess).expect("a plan")
}

/// The trials of a cell. Random requests do not depend on the start of a pass.
fn trials(cell: &CellSpec) -> Vec<TrialSpec> {
    let mut trials: Vec<TrialSpec> = match cell.has_groups() {
        true => {
            let groups = cell.group_trials().into_iter();
            groups.map(|group| group.trial).collect()
        }
        false => vec![cell.trial.clone()],
    };
    for trial in trials
        .iter_mut()
        .filter(|trial| !trial.pattern.is_ordered())
    {
        trial.first_offset = FirstOffset::Zero;
    }
    trials
}

#[test]
fn written_jobs_read_as_the_same_cells() {
    check(&["written"], |line| {
        let plan = plan(line);
        let (written, left_out) = match job_file(&plan, None) {
            Ok(written) => written,
            Err(error) => return error.message().to_owned(),
        };
        let file = parse(&written, "again").expect(&written);
        let again = cells(&file.experiment).expect("cells");
        let mut wanted: Vec<_> = plan.cells().iter().map(|cell| trials(&cell.spec)).collect();
        for cell in &again {
            let spec = trials(&cell.spec);
            let place = wanted.iter().position(|wanted| *wanted == spec);
            wanted.remove(place.unwrap_or_else(|| panic!("{spec:?} in {wanted:#?}\n{written}")));
        }
        assert_eq!(
            wanted.len(),
            written.matches("; left out: ").count(),
            "{line}"
        );
        format!("{} jobs\n{}", again.len(), left_out.join("\n"))
    });
}
