//! Columns of the pressure on the machine, of a trial and of what `iolab witness` saw.

/// Meaning of the three columns of stall times.
pub(super) const STALL: &str = "pressure (PSI, `some`): time in which any task of the machine waited for a CPU, for I/O, for memory; unknown below four ticks of the kernel (16 ms at 250 Hz)";

/// The columns of rows of a type, with the place of the counters in one. A counter without a column does not compile.
macro_rules! pressure_columns {
    ($row:ty, $of:ident => $place:expr) => {
        pressure_columns!(
            $row, $of => $place;
            cpu_stall_ns = $crate::tables::pressure::STALL,
            io_stall_ns = $crate::tables::pressure::STALL,
            memory_stall_ns = $crate::tables::pressure::STALL,
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
