//! The arguments of the commands that make run files: study, run, resume and import.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::PEERS;
use iolab_command::options::{ConsentOption, LogOptions, SEED_MAX};
use iolab_plan::experiment::REFINE_MAX;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::units::parse_positive_duration;

/// Options that change an experiment. Each short form is the same as a --set.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Set or sweep a setting: bs=4k,64k,1M ('iolab list --settings --all' shows all); each once
    #[arg(long = "set", value_name = "NAME=VALUE[,VALUE]")]
    pub(crate) sets: Vec<String>,
    /// Bypass the page cache with O_DIRECT (sets cache=direct only)
    #[arg(long, conflicts_with = "buffered")]
    pub(crate) direct: bool,
    /// Use the page cache, and drop it before each trial (cache=cold)
    #[arg(long)]
    pub(crate) buffered: bool,
    /// I/O size (bs): 4k or 4k,64k,1M
    #[arg(long, value_name = "SIZE[,SIZE]")]
    pub(crate) bs: Option<String>,
    /// Bytes of the target to use (region), or a share of a file or block device: 10GiB, 100%
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Workers (threads)
    #[arg(long, value_name = "N[,N]")]
    pub(crate) threads: Option<String>,
    /// Requests in flight per worker (depth); above 1, a built-in experiment without an asynchronous
    /// backend runs on io_uring, or on libaio where io_uring is forbidden
    #[arg(long, value_name = "N[,N]")]
    pub(crate) depth: Option<String>,
    /// Issue this many requests per second in total (rate), whether or not earlier ones have
    /// completed (open loop); response time counts from the scheduled start
    #[arg(long, value_name = "N[,N]")]
    pub(crate) rate: Option<String>,
    /// Use a new file for each trial that only writes (allocate=fresh)
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Maximum duration of one trial (time)
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Repeat until the median is known to within this share: 5%
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<String>,
    /// Time for all trials together
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,
    /// Prepare the target first: trim, or purge (erases all of an NVMe namespace; trims others),
    /// seq:2/128KiB, rand:1 (passes over the region), steady (rounds of random writes until they
    /// are steady), joined by '+'; not part of the budget.
    /// steady:round=cells repeats rounds of all cells until they are steady
    #[arg(long, value_name = "PLAN")]
    pub(crate) precondition: Option<String>,
    /// Pause between blocks of trials; not part of the budget
    #[arg(long, value_name = "TIME")]
    pub(crate) settle: Option<String>,
    /// Also measure the same cells with the installed fio or IOzone, in the same blocks (tool=iolab,...)
    #[arg(long = "peer", value_name = "TOOL", value_parser = peer_names())]
    pub(crate) peers: Vec<String>,
    /// Print the plan (cells, trials, time, bytes written, free space) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of the order of trials, the offsets and the data; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
    #[command(flatten)]
    pub(crate) system: SystemOption,
    #[command(flatten)]
    pub(crate) programs: ProgramsOption,
}

/// The available peers, each with its description.
fn peer_names() -> PossibleValuesParser {
    let names = PEERS
        .iter()
        .map(|peer| PossibleValue::new(peer.tool.name()).help(peer.about));
    PossibleValuesParser::new(names)
}

/// Option that lets trials change the system in addition to their target.
#[derive(Debug, Args)]
pub(crate) struct SystemOption {
    /// Let trials change settings of the kernel (--set system=...), as root: each is restored after its trial, and after a
    /// kill by the next run; also allows real-time threads (--set realtime=...), which can keep other programs from the CPUs
    #[arg(long)]
    pub(crate) change_system: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProgramsOption {
    /// Start the programs that an experiment, suite or run file names (command); --dry-run lists them. A command that
    /// you type (--set command=...) needs no consent
    #[arg(long)]
    pub(crate) run_programs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Study {
    /// Directories, files, block devices, or model:NAME ('iolab model list', or a TOML file); default:
    /// the current directory. Several targets are levels of the factor target, measured in the same blocks; each adds
    /// the budget of the suite; models run afterwards
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Call a TARGET by a name in tables, curves and sentences: /mnt/a=WD-Red
    #[arg(long = "name", value_name = "TARGET=NAME")]
    pub(crate) names: Vec<String>,
    /// Name of a built-in suite (glance, quick, micro) or a TOML file
    #[arg(long, value_name = "NAME", default_value = "glance")]
    pub(crate) suite: String,
    /// Folder for the run files
    #[arg(short, long, value_name = "FOLDER", default_value = "iolab-results")]
    pub(crate) output: PathBuf,
    /// Print every table and every finding
    #[arg(long)]
    pub(crate) full: bool,
    /// After the study, find the causes of its two largest effects, as 'iolab why' does, with this time for the trials
    /// of each [default: 5min]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "5min", value_parser = parse_positive_duration)]
    pub(crate) explain: Option<Duration>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Name of a built-in experiment ('iolab list'), a TOML file, or a job file of fio (NAME.fio)
    pub(crate) experiment: String,
    /// Directory, file, block device, or model:NAME ('iolab model list', or a TOML file); default:
    /// the target in the job file, or the current directory. Several targets are levels of the factor target, measured
    /// in the same blocks ('iolab compare FILE --by target' compares them); each adds the budget of the experiment;
    /// models run afterwards, in separate run files
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Call a TARGET by a name in tables, curves and sentences: /mnt/a=WD-Red
    #[arg(long = "name", value_name = "TARGET=NAME")]
    pub(crate) names: Vec<String>,
    /// Let a job file of fio include files outside its folder
    #[arg(long)]
    pub(crate) allow_include: bool,
    /// Use all TARGETs at once, a group of workers for each: measures each alone, the first two, three, ...
    /// together, and all of them (factor active)
    #[arg(long)]
    pub(crate) together: bool,
    /// Run file to write, or a folder for it; default: a new name in iolab-results/
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print every chart and every finding
    #[arg(long)]
    pub(crate) full: bool,
    /// Ceilings to compare the results with: read=510MB/s,write=485MB/s,iops=95000, or measure
    /// to find them with short probes before the run
    #[arg(long, value_name = "LIST")]
    pub(crate) peak: Option<String>,
    /// Find a rate (open loop) at which response times hold these levels and one at which they
    /// fail: p99<1ms, or several: p50<200us,p99.9<5ms,syncs.max<50ms. With --rate: check whether they hold at that
    /// rate (exit code 0 yes, 4 no, 5 cannot tell)
    #[arg(long, value_name = "LEVELS", conflicts_with = "refine")]
    pub(crate) slo: Option<ServiceLevels>,
    /// After the run, add N finer sizes around each bend and each best size, and measure all sizes
    /// again with a second budget; only these trials count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REFINE_MAX)))]
    pub(crate) refine: Option<u32>,
    /// Measure one trial of this length per cell without a warm-up, and show how throughput and latency change
    /// during it: 1h
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration, conflicts_with_all = ["time", "refine", "slo"])]
    pub(crate) soak: Option<Duration>,
    /// Write blocks with offset, generation and checksum, and check them after each trial: finds
    /// corrupted, misplaced, stale, torn and lost blocks (verify=true)
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Output of fio --output-format=json (or json+), or of iozone
    pub(crate) file: PathBuf,
    /// Machine that it was measured on, which few reports name: runs of different machines form no series
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Run file to write, or a folder for it; default: a new name in iolab-results/
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Run files, one after the other, or a folder whose interrupted runs are finished; all runs of one 'iolab fit' give one answer
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print the rest of the plan (trials, time, bytes written, free space) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
    #[command(flatten)]
    pub(crate) system: SystemOption,
    #[command(flatten)]
    pub(crate) programs: ProgramsOption,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}
