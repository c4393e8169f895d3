//! Real-time threads that take a CPU from the tested program.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use needs::Need;

use crate::cleanup::Cleanup;
use crate::system::{Made, Unmade, failed, lacks};

/// Starts a shell script as a real-time process (SCHED_FIFO) on one CPU, and returns once it runs. `keeper`
/// ends it at the latest.
///
/// # Errors
///
/// `chrt` or `taskset` is not installed, or the kernel refuses the priority or the CPU.
pub fn start(keeper: &Cleanup, priority: u32, cpu: usize, script: &str) -> Made<Child> {
    let mut child = Command::new("chrt")
        .args(["-f", &priority.to_string(), "taskset", "-c"])
        .args([&cpu.to_string(), "sh", "-c"])
        // chrt starts the script even if its request is refused, so a line shows that the script was reached.
        .arg(format!("echo\n{script}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(lacks(Need::RealTime, "chrt"))?;
    keeper.end(&child);
    let line = child.stdout.as_mut().map(|out| out.read(&mut [0]));
    match line {
        Some(Ok(1)) => Ok(child),
        _ => {
            let status = child.wait().map_err(failed("chrt"))?;
            keeper.forget();
            let why = format!("chrt -f {priority} taskset -c {cpu} ended: {status}");
            Err(Unmade::Missing(Need::RealTime, why))
        }
    }
}
