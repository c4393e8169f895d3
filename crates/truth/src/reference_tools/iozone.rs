//! IOzone, as one of the studies used it: `-I` for direct I/O, `-e` to include the flush.

use std::path::Path;

use super::{NOT_INSTALLED, throughput};
use crate::scene::Scene;
use crate::system::run;
use crate::workload::Workload;

/// Throughput that IOzone reports, of the second of its two sequential passes or of its random one. It always
/// writes its file first, so the target's content is lost.
pub fn iozone(scene: &Scene, workload: &Workload) -> String {
    if run("iozone", &["-v"]).is_err() {
        return NOT_INSTALLED.to_owned();
    }
    if !scene.target.is_file() {
        return "takes files only".to_owned();
    }
    match printed(scene, workload).map(|text| kib_s(&text, workload)) {
        Some(Some(kib_s)) => throughput(kib_s * 1024.0 / 1e6),
        Some(None) => "no result".to_owned(),
        None => "did not start".to_owned(),
    }
}

/// Throughput that IOzone reports, MB/s; `None` without a report.
pub fn measure(scene: &Scene, workload: &Workload) -> Option<f64> {
    kib_s(&printed(scene, workload)?, workload).map(|kib_s| kib_s * 1024.0 / 1e6)
}

/// Output of IOzone; `None` if it does not start.
fn printed(scene: &Scene, workload: &Workload) -> Option<String> {
    let mut command = scene.command(Path::new("iozone"));
    let passes = if workload.random { "2" } else { "1" };
    command.args(["-e", "-i", "0", "-i", passes, "-w"]);
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

/// Bytes of the file: the workload's, but at most a thousand records, because IOzone has no time limit.
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

/// Throughput from the row of numbers: size and record length in KiB, then KiB/s of write, rewrite, and of
/// read, reread or of random read, random write.
fn kib_s(text: &str, workload: &Workload) -> Option<f64> {
    let numbers = |line: &str| -> Option<Vec<f64>> {
        line.split_whitespace()
            .map(|word| word.parse().ok())
            .collect()
    };
    let row = text
        .lines()
        .filter_map(numbers)
        .find(|row| row.len() >= 6)?;
    let column = match (workload.random, workload.writes) {
        (false, true) => 3,
        (true, false) => 4,
        (false, false) | (true, true) => 5,
    };
    row.get(column).copied()
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
        assert_eq!(kib_s(text, &Workload::READ), Some(400_000.0));
        assert_eq!(kib_s(text, &Workload::WRITE), Some(200_000.0));
        assert_eq!(kib_s("Error in file: Found 0", &Workload::READ), None);
        let text = "  kB  reclen  write rewrite read write\n  32768      64   100000   200000  300000   400000\n";
        let random = |workload| Workload {
            random: true,
            ..workload
        };
        assert_eq!(kib_s(text, &random(Workload::READ)), Some(300_000.0));
        assert_eq!(kib_s(text, &random(Workload::WRITE)), Some(400_000.0));
    }
}
