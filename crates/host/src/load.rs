//! Load of the machine by other processes: a short look at its counters while this process sleeps.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::counters;
use iolab_storage::Stack;
use iolab_storage::procfs::CpuTicks;
use iolab_workload::counters::Counters;

/// Load during the look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Load {
    /// Busy CPUs: 1.5 is one and a half.
    pub cpus_busy: Option<f64>,
    /// CPU time that a hypervisor gave to others, in CPUs.
    pub cpus_stolen: Option<f64>,
    /// Process that used the most CPU time, and the number of CPUs.
    pub busiest: Option<(String, f64)>,
    /// Share of the time in which some task waited for memory.
    pub memory_stall: Option<f64>,
    /// Read rate of the target's device, bytes per second.
    pub device_read_rate: Option<f64>,
    /// Write rate of the target's device, bytes per second.
    pub device_write_rate: Option<f64>,
    /// Completed requests of the target's device, per second.
    pub device_request_rate: Option<f64>,
}

impl Load {
    /// Watches the machine and the target's devices for `span`.
    pub fn look(proc: &Path, stack: &Stack, span: Duration) -> Self {
        let before = Snapshot::take(proc, stack);
        std::thread::sleep(span);
        before.until_now(proc, stack)
    }
}

/// CPU time of one process, clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    pid: u32,
    name: String,
    ticks: u64,
}

#[derive(Debug)]
struct Snapshot {
    tasks: Vec<Task>,
    at: Instant,
    busy_ticks: Option<u64>,
    counters: Counters,
}

impl Snapshot {
    fn take(proc: &Path, stack: &Stack) -> Self {
        Self {
            tasks: tasks(proc),
            at: Instant::now(),
            busy_ticks: busy_ticks_now(proc),
            counters: counters::snapshot(std::slice::from_ref(stack)),
        }
    }

    fn until_now(&self, proc: &Path, stack: &Stack) -> Load {
        let stacks = std::slice::from_ref(stack);
        let counters = counters::since(&self.counters, self.at.elapsed(), stacks);
        let busy_ticks = busy_ticks_now(proc);
        let seconds = self.at.elapsed().as_secs_f64().max(1e-3);
        let per_second = iolab_storage::kernel_units::clock_ticks_per_second() as f64;
        let cpus = |ticks: u64| ticks as f64 / per_second / seconds;
        let rate = |count: u64| count as f64 / seconds;
        let share = |ns: u64| (ns as f64 / 1e9 / seconds).min(1.0);
        // Whole disk where possible: traffic with its other partitions counts too.
        let device = counters.bottom.map(|b| b.stat).or(counters.device);
        let busy = busy_ticks.zip(self.busy_ticks);
        Load {
            cpus_busy: busy.map(|(now, then)| cpus(now.saturating_sub(then))),
            cpus_stolen: counters
                .pressure
                .steal_ns
                .map(|ns| ns as f64 / 1e9 / seconds),
            busiest: busiest(&tasks(proc), &self.tasks).map(|(name, ticks)| (name, cpus(ticks))),
            memory_stall: counters.pressure.memory_stall_ns.map(share),
            device_read_rate: device.map(|d| rate(d.read_bytes)),
            device_write_rate: device.map(|d| rate(d.write_bytes)),
            device_request_rate: device.map(|d| rate(d.read_ios + d.write_ios)),
        }
    }
}

fn busy_ticks_now(proc: &Path) -> Option<u64> {
    Some(CpuTicks::parse(&fs::read_to_string(proc.join("stat")).ok()?)?.busy)
}

/// All processes but this one.
fn tasks(proc: &Path) -> Vec<Task> {
    let Ok(entries) = fs::read_dir(proc) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read(entry.path().join("stat")).ok()?;
            task(pid, &String::from_utf8_lossy(&text))
        })
        .filter(|task| task.pid != std::process::id())
        .collect()
}

/// Parses proc_pid_stat(5). The name stands in parentheses and may contain some itself.
fn task(pid: u32, stat: &str) -> Option<Task> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(open + 1..close)?.to_owned();
    // The state, field 3, comes first here; utime is field 14, stime 15.
    let mut fields = stat.get(close + 1..)?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()?.saturating_add(ticks()?);
    Some(Task { pid, name, ticks })
}

fn busiest(now: &[Task], then: &[Task]) -> Option<(String, u64)> {
    let used = now.iter().map(|task| {
        let before = then.iter().find(|other| other.pid == task.pid);
        let before = before.map_or(0, |other| other.ticks);
        (task, task.ticks.saturating_sub(before))
    });
    let (task, ticks) = used.max_by_key(|(_, ticks)| *ticks)?;
    (ticks > 0).then(|| (task.name.clone(), ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_as_linux_prints_it() {
        let line = "77 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        let expected = Task {
            pid: 77,
            name: "a (b) c".to_owned(),
            ticks: 42,
        };
        assert_eq!(task(77, line), Some(expected));
        assert_eq!(task(77, "77 (x"), None);
    }

    #[test]
    fn busiest_process_is_counted_between_two_looks() {
        let of = |pid, name: &str, ticks| Task {
            pid,
            name: name.to_owned(),
            ticks,
        };
        let then = [of(1, "old", 9_000), of(2, "busy", 10)];
        let now = [of(1, "old", 9_001), of(2, "busy", 30), of(3, "new", 5)];
        assert_eq!(busiest(&now, &then), Some(("busy".to_owned(), 20)));
        assert_eq!(busiest(&then, &then), None);
    }
}
