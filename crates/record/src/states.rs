//! States and kinds that a run file stores by name: of runs, targets, cells, trials and events.

use iolab_workload::named;

named! {
    /// The state of a run.
    #[derive(Default)]
    pub enum RunStatus: "status" {
        /// Being measured, or ended by a crash.
        #[default]
        Running = "running",
        /// The plan is complete.
        Done = "done",
        /// Stopped by the user; can be resumed.
        Interrupted = "interrupted",
        /// Ended by a failure; can be resumed.
        Failed = "failed",
    }
}

named! {
    /// The kind of a run's target.
    #[derive(Default)]
    pub enum TargetKind: "kind of target" {
        /// Files created by iolab.
        #[default]
        Scratch = "scratch",
        /// A file of the user.
        File = "file",
        /// A block device.
        BlockDevice = "block-device",
        /// A character device.
        CharDevice = "char-device",
        /// Imported results of another tool.
        Imported = "imported",
        /// A computed disk.
        Model = "model",
        /// No target: commands are timed, wherever their bytes are.
        Commands = "commands",
    }
}

impl TargetKind {
    /// Whether it was there before the run, with data that may not be the run's.
    pub fn is_existing(self) -> bool {
        match self {
            Self::File | Self::BlockDevice | Self::CharDevice => true,
            Self::Scratch | Self::Imported | Self::Model | Self::Commands => false,
        }
    }

    /// Whether a run that was cut off can be resumed.
    pub fn is_resumable(self) -> bool {
        !matches!(self, Self::Model | Self::Commands)
    }
}

named! {
    /// Reason for the end of the repetition of a cell.
    pub enum EndedBy: "end" {
        /// The precision goal is reached.
        Precision = "precision",
        /// The search for a rate, whose trials this cell has, ended.
        Search = "search",
        /// The rounds of all cells were steady.
        Steady = "steady",
        /// The rounds of all cells wrote their range as often as the design allows.
        Fills = "fills",
        /// The budget was used up.
        Budget = "budget",
        /// The bytes that the run may write were used up.
        Writes = "writes",
        /// The cell has as many trials as the design allows.
        TrialsMax = "trials-max",
        /// The user ended the run by Ctrl-C or another signal.
        User = "user",
    }
}

named! {
    /// Kind of a preparation step on a target before the first trial.
    #[derive(Default)]
    pub enum PreparationKind: "kind of preparation" {
        /// A pass that trims.
        #[default]
        Trim = "trim",
        /// A purge of all of the device.
        Purge = "purge",
        /// A pass of sequential writes.
        Sequential = "seq",
        /// A pass of random writes.
        Random = "rand",
        /// Random writes for a time, one of the rounds until these are steady.
        Round = "round",
    }
}

named! {
    /// Reason for the end of a trial.
    #[derive(Default)]
    pub enum Ended: "end of a trial" {
        /// Everything requested was done.
        #[default]
        Done = "done",
        /// The trial was steady (setting `steady`).
        Steady = "steady",
        /// The trial reached its time limit.
        Time = "time",
        /// A request or the program failed.
        Failed = "failed",
    }
}

named! {
    /// The kind of an event.
    #[derive(Default)]
    pub enum EventKind: "kind of event" {
        /// Worth knowing.
        #[default]
        Note = "note",
        /// A condition that affects the results.
        Warning = "warning",
        /// An error that ended the run.
        Error = "error",
        /// A decision from measurements.
        Choice = "choice",
        /// The run was resumed.
        Resume = "resume",
        /// Why a cell has no trials, or none after some point.
        Gap = "gap",
    }
}

named! {
    /// The origin or destination of a sample's bytes.
    #[derive(Default, PartialOrd, Ord)]
    pub enum ServedBy: "verdict" {
        /// The storage device.
        Device = "device",
        /// The page cache.
        PageCache = "page-cache",
        /// Partly the device; see the share.
        Mixed = "mixed",
        /// No storage, at least in part: the bytes are in holes or unwritten extents, which read as zeros.
        Hole = "hole",
        /// A character device, a file system in memory, or no I/O at all.
        NotStorage = "not-storage",
        /// A file server, over the network: from its disks or its memory.
        Network = "network",
        /// A computed disk.
        Model = "model",
        /// The evidence does not suffice; see the reason.
        #[default]
        Unknown = "unknown",
    }
}

impl ServedBy {
    /// Whether it holds for each part of the bytes, such as the bytes of one group: without storage, or with a computed
    /// one.
    pub fn holds_for_parts(self) -> bool {
        match self {
            Self::NotStorage | Self::Model => true,
            Self::Device
            | Self::PageCache
            | Self::Mixed
            | Self::Hole
            | Self::Network
            | Self::Unknown => false,
        }
    }
}

named! {
    /// The clock of a run.
    #[derive(Default)]
    pub enum ClockDomain: "clock domain" {
        /// The clock of the machine.
        #[default]
        Real = "real",
        /// The virtual time of a computed disk.
        Virtual = "virtual",
    }
}

named! {
    /// Kind of time of a request.
    #[derive(Default, PartialOrd, Ord)]
    pub enum RequestTime: "quantity" {
        /// Completion minus submission.
        #[default]
        Service = "service",
        /// Completion minus intended start.
        Response = "response",
        /// Submission minus intended start.
        Lateness = "lateness",
    }
}
