//! Starts of several processes by a launcher (mpirun, srun): unrelated runs, unless something connects them.

use iolab_workload::names::alternatives;
use iolab_workload::{Error, table};

/// Commands that the user may have typed, and the variables that they set: the number of processes, and of this process.
/// mpirun of MPICH and its descendants is another name of their mpiexec, which sets the variables of PMI.
type Launcher = (&'static [&'static str], &'static str, &'static str);

/// Launchers in the order in which they are checked: mpirun may start its own daemons with srun.
///
/// `SLURM_NTASKS` does not mean several processes: a batch script has it too, and runs once. Only srun sets
/// `SLURM_STEP_NUM_TASKS`.
const LAUNCHERS: [Launcher; 6] = table! {
    (&["mpirun"], "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
    (&["mpirun"], "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK");
    (&["mpiexec", "mpirun"], "PMI_SIZE", "PMI_RANK");
    (&["srun"], "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
    (&["flux run"], "FLUX_JOB_SIZE", "FLUX_TASK_RANK");
    (&["jsrun"], "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK");
};

/// A start of several processes, including this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Launcher as the user typed it; `mpiexec, mpirun or srun` if it can be any of them, because srun too
    /// speaks PMI.
    pub command: String,
    /// Number of processes, at least 2.
    pub size: u32,
    /// Number of this process, from 0; `None` where the launcher does not set it.
    pub rank: Option<u32>,
    /// Variables with this information.
    pub variables: Vec<&'static str>,
}

impl Launch {
    /// Start of this process; `None` if it is the only one.
    pub fn here() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok())
    }

    /// Start described by the environment variables; `None` if this process is the only one.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let several = |(_, size, _): &&Launcher| number(size).is_some_and(|size| size > 1);
        let (_, size, rank) = LAUNCHERS.iter().find(several)?;
        let (size, rank) = (number(size)?, number(rank));
        let all = LAUNCHERS.iter().filter(several);
        let says_the_same = |(_, of_size, of_rank): &&Launcher| {
            number(of_size) == Some(size) && number(of_rank) == rank
        };
        let mut commands: Vec<&str> = Vec::new();
        for command in all
            .clone()
            .filter(says_the_same)
            .flat_map(|(commands, ..)| *commands)
        {
            if !commands.contains(command) {
                commands.push(command);
            }
        }
        Some(Self {
            command: alternatives(&commands),
            size,
            rank,
            variables: all.map(|(_, size, _)| *size).collect(),
        })
    }

    /// Whether a launcher (mpirun, srun) started this process; also true for a single process.
    pub fn is_there(variable: impl Fn(&str) -> Option<String>) -> bool {
        let is_number =
            |name: &str| variable(name).is_some_and(|n| n.trim().parse::<u32>().is_ok());
        LAUNCHERS.iter().any(|(_, size, _)| is_number(size))
    }

    /// Whether another process informs the user on behalf of all.
    pub fn is_silent(&self) -> bool {
        self.rank.is_some_and(|rank| rank > 0)
    }

    /// Error for several processes with a `command` (`fit`) for one process; `instead` describes the
    /// alternative for several.
    pub fn one_process_only(&self, command: &str, instead: &str) -> Error {
        self.unrelated(
            &format!("'iolab {command}' measures with one process"),
            &format!("start it without {}; {instead}", self.command),
        )
    }

    /// Error for several processes in a build without MPI.
    pub fn without_mpi(&self) -> Error {
        self.unrelated(
            "this build cannot run across processes",
            "build it with MPI: cargo install --locked --path crates/cli --features mpi (needs mpicc and libclang); or start one process",
        )
    }

    /// Error for several processes, each of which its MPI takes for the only one.
    pub fn unconnected(&self) -> Error {
        self.unrelated(
            "MPI does not connect them",
            "use the mpirun of the MPI that iolab was built with, or with srun the option --mpi that it needs (srun --mpi=list); or start one process",
        )
    }

    fn unrelated(&self, why: &str, remedy: &str) -> Error {
        let unset: Vec<_> = self.variables.iter().map(|v| format!("-u {v}")).collect();
        Error::usage(format!(
            "{} started {} processes of iolab, and {why}: they would be {} unrelated runs in one directory",
            self.command, self.size, self.size
        ))
        .hint(format!(
            "{remedy}; for unrelated runs on purpose: env {} iolab ...",
            unset.join(" ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(environment: &[(&str, &str)]) -> Option<Launch> {
        Launch::of(|name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_single_process_is_no_launch() {
        assert_eq!(launch(&[]), None);
        assert_eq!(launch(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]), None);
        assert_eq!(launch(&[("PMI_SIZE", "many")]), None);
    }

    #[test]
    fn a_batch_script_runs_once() {
        let batch = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_NTASKS", "64"),
            ("SLURM_PROCID", "0"),
        ];
        assert_eq!(launch(&batch), None);
    }

    #[test]
    fn each_launcher_is_noticed() {
        for (_, size, rank) in LAUNCHERS {
            let found = launch(&[(size, "64"), (rank, "3")]).expect("a launch");
            assert_eq!((found.size, found.rank), (64, Some(3)));
            assert_eq!(found.variables, [size]);
            assert!(found.is_silent());
        }
    }

    #[test]
    fn mpiexec_counts_above_srun_for_its_daemons() {
        let nested = [
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_PROCID", "1"),
            ("PMI_SIZE", "128"),
            ("PMI_RANK", "0"),
        ];
        let found = launch(&nested).expect("a launch");
        assert_eq!(
            (found.command.as_str(), found.size),
            ("mpiexec or mpirun", 128)
        );
        assert!(!found.is_silent());
        let refusal = found.without_mpi();
        let hint = refusal.remedy().expect("a hint");
        insta::assert_snapshot!(hint, @"build it with MPI: cargo install --locked --path crates/cli --features mpi (needs mpicc and libclang); or start one process; for unrelated runs on purpose: env -u PMI_SIZE -u SLURM_STEP_NUM_TASKS iolab ...");
        let unconnected = found.unconnected();
        insta::assert_snapshot!(unconnected.message(), @"mpiexec or mpirun started 128 processes of iolab, and MPI does not connect them: they would be 128 unrelated runs in one directory");
    }

    #[test]
    fn possible_launchers_are_named_once_each() {
        let by = |environment: &[(&str, &str)]| launch(environment).expect("a launch").command;
        let pmi = [("PMI_SIZE", "4"), ("PMI_RANK", "1")];
        let srun = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "1")];
        let open_mpi = [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "1")];
        let mvapich = [("MV2_COMM_WORLD_SIZE", "4"), ("MV2_COMM_WORLD_RANK", "1")];
        assert_eq!(by(&open_mpi), "mpirun");
        assert_eq!(by(&srun), "srun");
        assert_eq!(by(&[srun, pmi].concat()), "mpiexec, mpirun or srun");
        assert_eq!(by(&[open_mpi, pmi].concat()), "mpirun or mpiexec");
        assert_eq!(by(&[open_mpi, mvapich].concat()), "mpirun");
    }
}
