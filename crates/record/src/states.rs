//! The states and kinds that a run file stores by name: of a run, a target, a cell, a trial, an event.

use iolab_workload::named;

named! {
    /// The state of a run.
    #[derive(Default)]
    pub enum RunStatus: "status" {
        /// Being measured, or cut off by a crash.
        #[default]
        Running = "running",
        /// The plan was carried out.
        Done = "done",
        /// Stopped by the user; can be resumed.
        Interrupted = "interrupted",
        /// Ended by a failure; can be resumed.
        Failed = "failed",
    }
}

named! {
    /// What a run was measured on.
    #[derive(Default)]
    pub enum TargetKind: "kind of target" {
        /// A file of iolab's own, or several.
        #[default]
        Scratch = "scratch",
        /// A file of the user's.
        File = "file",
        /// A block device.
        BlockDevice = "block-device",
        /// A character device.
        CharDevice = "char-device",
        /// Another tool measured it, before.
        Imported = "imported",
        /// A disk that is computed.
        Model = "model",
    }
}

named! {
    /// What ended the repetition of a cell.
    pub enum EndedBy: "end" {
        /// The precision goal is reached.
        Precision = "precision",
        /// The time is spent.
        Budget = "budget",
        /// It has as many trials as the design allows.
        TrialsMax = "trials-max",
        /// The user ended the run, by Ctrl-C or another signal.
        User = "user",
    }
}

named! {
    /// How a trial ended.
    #[derive(Default)]
    pub enum Ended: "end of a trial" {
        /// All that was asked for is done.
        #[default]
        Done = "done",
        /// Its time was over.
        Time = "time",
        /// A request or the program failed.
        Failed = "failed",
    }
}

named! {
    /// What an event is.
    #[derive(Default)]
    pub enum EventKind: "kind of event" {
        /// Something worth knowing.
        #[default]
        Note = "note",
        /// Something that colours the results.
        Warning = "warning",
        /// What ended the run.
        Error = "error",
        /// Something that a measurement has decided.
        Choice = "choice",
        /// The run was taken up again.
        Resume = "resume",
        /// Why a cell has no trial, or none after a certain one.
        Gap = "gap",
    }
}

named! {
    /// Where the bytes of a sample came from or went to.
    #[derive(Default, PartialOrd, Ord)]
    pub enum ServedBy: "verdict" {
        /// The storage device.
        Device = "device",
        /// The page cache.
        PageCache = "page-cache",
        /// Partly the device; see the fraction.
        Mixed = "mixed",
        /// Nothing: the bytes lie in holes or unwritten extents, which read as zeros.
        Hole = "hole",
        /// A character device, a file system in memory, or no I/O at all.
        NotStorage = "not-storage",
        /// A disk that is computed.
        Model = "model",
        /// The evidence does not tell; see the reason.
        #[default]
        Unknown = "unknown",
    }
}

named! {
    /// Which clock a run was timed by.
    #[derive(Default)]
    pub enum ClockDomain: "clock domain" {
        /// The machine's own.
        #[default]
        Real = "real",
        /// That of a disk that is computed.
        Virtual = "virtual",
    }
}

named! {
    /// Which time of a request is meant.
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
