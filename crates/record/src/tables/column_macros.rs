//! Macros for columns at a path into a row, and for groups of columns that several tables have.

/// A column of numbers or flags: `number`, `real` or `flag` of [`Column`], name, type of the rows, path. Its meaning
/// follows, as for all columns: `.doc(...)`.
macro_rules! column {
    ($make:ident, $name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::$make(
            $name,
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*),
            |row, value| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = value,
        )
        .null(null!($(? $(.$in)+)*))
    };
    ($make:ident, $name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)* ?) => {
        $crate::column::Column::$make(
            $name,
            |row: &$type| row.$($at).+ $(.as_ref()? $(.$in)+)*,
            |row, value| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = Some(value),
        )
        .null($crate::column::Null::Free)
    };
}

/// Condition under which a value is NULL: one of these parts of its path is missing.
macro_rules! null {
    () => {
        $crate::column::Null::Never
    };
    ($($part:tt)+) => {
        $crate::column::Null::Account
    };
}

/// A column of numbers.
macro_rules! number {
    ($($of:tt)+) => { column!(number, $($of)+) };
}

/// A column of floating-point numbers.
macro_rules! real {
    ($($of:tt)+) => { column!(real, $($of)+) };
}

/// A column of flags.
macro_rules! flag {
    ($($of:tt)+) => { column!(flag, $($of)+) };
}

/// A column of text.
macro_rules! text {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::text(
            $name,
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*.as_str().into()),
            |row, text| {
                text.clone_into(&mut row.$($at).+ $(.get_or_insert_default() $(.$in)+)*);
                true
            },
        )
        .null(null!($(? $(.$in)+)*))
    };
    ($name:expr, $type:ty, $($at:ident).+ ?) => {
        $crate::column::Column::text(
            $name,
            |row: &$type| row.$($at).+.as_deref().map(Into::into),
            |row, text| {
                row.$($at).+ = Some(text.to_owned());
                true
            },
        )
        .null($crate::column::Null::Free)
    };
}

/// A column of words of an enum.
macro_rules! word {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*, $words:ty) => {
        $crate::column::Column::text(
            $name,
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*.name().into()),
            |row, text| {
                let word = text.parse::<$words>();
                word.map(|word| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = word).is_ok()
            },
        )
        .one_of(<$words>::NAMES)
        .null(null!($(? $(.$in)+)*))
    };
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)* ?, $words:ty) => {
        $crate::column::Column::text(
            $name,
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*?.name().into()),
            |row, text| {
                let word = text.parse::<$words>();
                word.map(|word| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = Some(word)).is_ok()
            },
        )
        .one_of(<$words>::NAMES)
        .null($crate::column::Null::Free)
    };
}

/// A column of a value that serde reads and writes, as JSON.
macro_rules! json_text {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::text(
            $name,
            |row: &$type| Some(serde_json::json!(row.$($at).+ $(.as_ref()? $(.$in)+)*).to_string().into()),
            |row, text| {
                let value = serde_json::from_str(text);
                let place = &mut row.$($at).+ $(.get_or_insert_default() $(.$in)+)*;
                value.map(|value| *place = value).is_ok()
            },
        )
        .null(null!($(? $(.$in)+)*))
    };
}

/// A column of any integer type; its range fits that type.
macro_rules! whole {
    ($name:literal, $type:ty, $($field:ident).+ as $as:ty) => {
        $crate::column::Column::number(
            $name,
            |row: &$type| Some(row.$($field).+ as u64),
            |row, n| row.$($field).+ = n as $as,
        )
        .between(0, if size_of::<$as>() == 4 { u32::MAX as u64 } else { i64::MAX as u64 })
    };
}

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

/// Meaning of the three columns of stall times.
pub(crate) const STALL: &str = "pressure (PSI, `some`): time in which any task of the machine waited for a CPU, for I/O, for memory; unknown below four ticks of the kernel (16 ms at 250 Hz)";

/// The columns of rows of a type, with the place of the counters in one. A counter without a column does not compile.
macro_rules! pressure_columns {
    ($row:ty, $of:ident => $place:expr) => {
        pressure_columns!(
            $row, $of => $place;
            cpu_stall_ns = $crate::tables::column_macros::STALL,
            io_stall_ns = $crate::tables::column_macros::STALL,
            memory_stall_ns = $crate::tables::column_macros::STALL,
            steal_ns = "CPU time that the hypervisor gave to others, all CPUs together; counted in ticks, mostly of 10 ms",
            interrupts = "interrupts that CPUs served, of devices, timers and other CPUs, of the whole machine; polling for completions causes fewer than one per request",
            suspended_ns = "time that the machine slept (CLOCK_BOOTTIME against CLOCK_MONOTONIC) or iolab was stopped (SIGTSTP)",
            throttled_ns = "time in which the control group of iolab or one above it had used up its CPU quota and waited, all CPUs together",
            cpu_khz = "greatest frequency among up to eight groups of CPUs (cpufreq) at the end, if cpufreq reports it",
        )
    };
    ($row:ty, $of:ident => $place:expr; $($field:ident = $doc:expr,)+) => {{
        use iolab_workload::counters::Pressure;
        // Names a field that has no column.
        let _: fn(Pressure) -> Pressure = |of| Pressure { $($field: of.$field,)+ };
        vec![$(
            $crate::column::Column::number(
                stringify!($field),
                |$of: &$row| $place.$field,
                |$of, n| $place.$field = Some(n),
            )
            .null($crate::column::Null::Free)
            .doc($doc),
        )+]
    }};
}
