//! What other tools print for the same workload on the same target.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::system::run;
use crate::workload::Workload;

/// What fio prints: throughput, median latency, error.
pub fn fio(target: &Path, workload: &Workload) -> String {
    if run("fio", &["--version"]).is_err() {
        return "not installed".to_owned();
    }
    let Ok(output) = Command::new("fio").args(workload.for_fio(target)).output() else {
        return "did not start".to_owned();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    // Messages may stand before the object.
    let json = text.find('{').and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok());
    let job = json.as_ref().map(|all| &all["jobs"][0]);
    let part = if workload.writes { "write" } else { "read" };
    let Some(done) = job.map(|job| &job[part]).filter(|done| done["total_ios"].as_u64() > Some(0)) else {
        return first_words(&output.stderr, &text);
    };
    let mb_s = done["bw_bytes"].as_f64().unwrap_or(0.0) / 1e6;
    let latency = done["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap_or(0.0) / 1e3;
    let error = job.and_then(|job| job["error"].as_i64()).unwrap_or(0);
    let failed = if error == 0 { String::new() } else { format!(", error {error}") };
    format!("{mb_s:.0} MB/s, p50 {latency:.0} us{failed}")
}

fn first_words(stderr: &[u8], stdout: &str) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    let mut lines = stderr.lines().chain(stdout.lines()).filter(|line| line.contains("fio:"));
    lines.next().unwrap_or("nothing").trim().to_owned()
}
