//! IOzone, as one of the studies used it: `-I` for direct I/O, `-e` to count the flush in.

use std::path::Path;

use super::{NOT_INSTALLED, throughput};
use crate::scene::Scene;
use crate::system::run;
use crate::workload::Workload;

/// What IOzone prints: throughput, of the second of its two passes. It always writes its file first, so that nothing it
/// is pointed at stays as it was.
pub fn iozone(scene: &Scene, workload: &Workload) -> String {
    if run("iozone", &["-v"]).is_err() {
        return NOT_INSTALLED.to_owned();
    }
    if !scene.target.is_file() {
        return "takes files only".to_owned();
    }
    match printed(scene, workload).map(|text| kib_s(&text, workload.writes)) {
        Some(Some(kib_s)) => throughput(kib_s * 1024.0 / 1e6),
        Some(None) => "no result".to_owned(),
        None => "did not start".to_owned(),
    }
}

/// What IOzone reports, MB/s; `None` where it reports nothing.
pub fn measure(scene: &Scene, workload: &Workload) -> Option<f64> {
    kib_s(&printed(scene, workload)?, workload.writes).map(|kib_s| kib_s * 1024.0 / 1e6)
}

/// What IOzone prints; `None` where it does not start.
fn printed(scene: &Scene, workload: &Workload) -> Option<String> {
    let mut command = scene.command(Path::new("iozone"));
    command.args(["-e", "-i", "0", "-i", "1", "-w"]);
    command.args(["-r", workload.bs, "-s", &size(workload)]);
    if workload.cache == "direct" {
        command.arg("-I");
    }
    if workload.mapped {
        command.arg("-B");
    }
    command.arg("-f").arg(&scene.target);
    let output = scene.carry_out(&mut command, |_| ()).ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Bytes of the file: those of the workload, but no more than a thousand records, since IOzone knows no limit of time.
fn size(workload: &Workload) -> String {
    let bytes = |text: &str| {
        let (number, unit) = text.split_at(text.len() - 1);
        let shift = if unit.eq_ignore_ascii_case("k") {
            10
        } else {
            20
        };
        number.parse::<u64>().unwrap_or(1) << shift
    };
    let most = 1024 * bytes(workload.bs);
    format!("{}k", bytes(workload.region).min(most) >> 10)
}

/// The row of numbers: size and record length in KiB, then KiB/s of write, rewrite, read, reread.
fn kib_s(text: &str, writes: bool) -> Option<f64> {
    let numbers = |line: &str| -> Option<Vec<f64>> {
        line.split_whitespace()
            .map(|word| word.parse().ok())
            .collect()
    };
    let row = text
        .lines()
        .filter_map(numbers)
        .find(|row| row.len() >= 6)?;
    row.get(if writes { 3 } else { 5 }).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_records_mean_a_small_file() {
        assert_eq!(size(&Workload::READ), "32768k");
        assert_eq!(size(&Workload::LATENCY), "4096k");
    }

    #[test]
    fn iozones_row_is_found_among_its_words() {
        let text = "\tRun began: Sat\n\tOutput is in kBytes/sec\n  kB  reclen  write rewrite read reread\n  32768      64   100000   200000  300000   400000\n\niozone test complete.\n";
        assert_eq!(kib_s(text, false), Some(400_000.0));
        assert_eq!(kib_s(text, true), Some(200_000.0));
        assert_eq!(kib_s("Error in file: Found 0", true), None);
    }
}
