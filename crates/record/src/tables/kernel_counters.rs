//! Macros for groups of counters of the kernel that several tables have: prefix of the names, type of the rows, path of the group in
//! brackets, meanings.

/// Names all fields of a type of counters that have columns: a field missing here does not compile.
macro_rules! names_all {
    ($type:path: $($field:ident)+) => {
        let _: fn($type) -> $type = |of| {
            use $type as Counted;
            Counted { $($field: of.$field),+ }
        };
    };
}

/// The I/O account of processes. Meanings: of bytes that calls moved, of calls, of bytes that storage moved.
macro_rules! process_io {
    ($prefix:literal, $type:ty, [$($at:tt)+], $moved:expr, $calls:expr, $stored:expr) => {{
        names_all!(iolab_workload::counters::ProcessIo: rchar wchar syscr syscw read_bytes write_bytes);
        [
            number!(concat!($prefix, "rchar_bytes"), $type, $($at)+.rchar).doc($moved),
            number!(concat!($prefix, "wchar_bytes"), $type, $($at)+.wchar).doc($moved),
            number!(concat!($prefix, "read_calls"), $type, $($at)+.syscr).doc($calls),
            number!(concat!($prefix, "write_calls"), $type, $($at)+.syscw).doc($calls),
            number!(concat!($prefix, "read_bytes"), $type, $($at)+.read_bytes).doc($stored),
            number!(concat!($prefix, "write_bytes"), $type, $($at)+.write_bytes).doc($stored),
        ]
    }};
}

/// CPU time, page faults and context switches, with a meaning of each of the three.
macro_rules! resource_use {
    ($type:ty, [$($at:tt)+], $cpu:expr, $faults:expr, $switches:expr) => {{
        names_all!(iolab_workload::counters::ResourceUse: user_ns system_ns minor_faults major_faults voluntary_switches involuntary_switches);
        [
            number!("user_ns", $type, $($at)+.user_ns).doc($cpu),
            number!("system_ns", $type, $($at)+.system_ns).doc($cpu),
            number!("minor_faults", $type, $($at)+.minor_faults).doc($faults),
            number!("major_faults", $type, $($at)+.major_faults).doc($faults),
            number!("voluntary_switches", $type, $($at)+.voluntary_switches).doc($switches),
            number!("involuntary_switches", $type, $($at)+.involuntary_switches).doc($switches),
        ]
    }};
}

/// The counters of a block device, NULL together if there are none; one meaning for all, or of requests, merges, bytes, the busy
/// time and the sum of the times.
macro_rules! device_stat {
    ($prefix:literal, $type:ty, [$($at:tt)+], $doc:expr) => {
        device_stat!($prefix, $type, [$($at)+], $doc, $doc, $doc, $doc, $doc)
    };
    ($prefix:literal, $type:ty, [$($at:tt)+], $ios:expr, $merges:expr, $bytes:expr, $busy:expr, $queue:expr) => {{
        names_all!(iolab_workload::counters::DeviceStat: read_ios read_merges read_bytes write_ios write_merges write_bytes flush_ios busy_ms queue_ms);
        [
            number!(concat!($prefix, "read_ios"), $type, $($at)+.read_ios).doc($ios),
            number!(concat!($prefix, "read_merges"), $type, $($at)+.read_merges).doc($merges),
            number!(concat!($prefix, "read_bytes"), $type, $($at)+.read_bytes).doc($bytes),
            number!(concat!($prefix, "write_ios"), $type, $($at)+.write_ios).doc($ios),
            number!(concat!($prefix, "write_merges"), $type, $($at)+.write_merges).doc($merges),
            number!(concat!($prefix, "write_bytes"), $type, $($at)+.write_bytes).doc($bytes),
            number!(concat!($prefix, "flush_ios"), $type, $($at)+.flush_ios).doc($ios),
            number!(concat!($prefix, "busy_ms"), $type, $($at)+.busy_ms).doc($busy),
        ]
        .map(|column| column.null($crate::column::Null::Account))
        .into_iter()
        .chain([number!(concat!($prefix, "queue_ms"), $type, $($at)+.queue_ms?).doc($queue)])
    }};
}

/// The part of a region in the page cache; one meaning for all, or of bytes looked at, held, dirty and being written.
macro_rules! residency {
    ($prefix:literal, $type:ty, [$($at:tt)+], $doc:expr) => {
        residency!($prefix, $type, [$($at)+], $doc, $doc, $doc, $doc)
    };
    ($prefix:literal, $type:ty, [$($at:tt)+], $looked:expr, $held:expr, $dirty:expr, $writeback:expr) => {{
        names_all!(iolab_workload::region_state::Residency: looked_bytes resident_bytes dirty_bytes writeback_bytes);
        [
            number!(concat!($prefix, "looked_bytes"), $type, $($at)+.looked_bytes).doc($looked),
            number!(concat!($prefix, "bytes"), $type, $($at)+.resident_bytes).doc($held),
            number!(concat!($prefix, "dirty_bytes"), $type, $($at)+.dirty_bytes?).doc($dirty),
            number!(concat!($prefix, "writeback_bytes"), $type, $($at)+.writeback_bytes?).doc($writeback),
        ]
    }};
}

/// Columns for the holes and unwritten extents of a region, with the meaning of the examined bytes and of the empty ones.
macro_rules! extents {
    ($type:ty, [$($at:tt)+], $looked:expr, $empty:expr) => {{
        names_all!(iolab_workload::region_state::Extents: looked_bytes hole_bytes unwritten_bytes);
        [
            number!("extents_looked_bytes", $type, $($at)+.looked_bytes).doc($looked),
            number!("hole_bytes", $type, $($at)+.hole_bytes).doc($empty),
            number!("unwritten_bytes", $type, $($at)+.unwritten_bytes?).doc($empty),
        ]
    }};
}
