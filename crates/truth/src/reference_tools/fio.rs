//! fio: `fio --output-format=json`, see its HOWTO.

use std::path::Path;

use serde_json::Value;

use super::{Figures, NOT_INSTALLED, throughput};
use crate::scene::Scene;
use crate::system::run;
use crate::workload::Workload;

/// Summary of fio's output: throughput, latency, error.
pub fn fio(scene: &Scene, workload: &Workload) -> String {
    if run("fio", &["--version"]).is_err() {
        return NOT_INSTALLED.to_owned();
    }
    let Some((text, words)) = printed(scene, workload) else {
        return "did not start".to_owned();
    };
    summary(&text, workload).unwrap_or_else(|| complaint(&words, &text))
}

/// Figures that fio reports; `None` without a report.
pub fn measure(scene: &Scene, workload: &Workload) -> Option<Figures> {
    figures(&printed(scene, workload)?.0, workload).map(|(figures, _)| figures)
}

/// Output of fio on its two streams; `None` if it does not start.
fn printed(scene: &Scene, workload: &Workload) -> Option<(String, String)> {
    let mut command = scene.command(Path::new("fio"));
    command.args(workload.for_fio(&scene.target));
    let output = scene.carry_out(&mut command, |_| ()).ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

fn summary(text: &str, workload: &Workload) -> Option<String> {
    let (figures, error) = figures(text, workload)?;
    let times = super::latency(figures.p50_ns, figures.p99_ns);
    let error = match error {
        None | Some(0) => String::new(),
        Some(number) => format!(", error {number}"),
    };
    Some(format!("{}, {times}{error}", throughput(figures.mb_s)))
}

/// Figures of the only job, and its error. Messages may precede the JSON object.
fn figures(text: &str, workload: &Workload) -> Option<(Figures, Option<i64>)> {
    let all: Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let job = &all["jobs"][0];
    let done = &job[if workload.writes { "write" } else { "read" }];
    if done["total_ios"].as_u64()? == 0 {
        return None;
    }
    let latency = &done["clat_ns"]["percentile"];
    let ns = |quantile: &str| latency[quantile].as_f64().unwrap_or(f64::NAN);
    let figures = Figures {
        mb_s: done["bw_bytes"].as_f64()? / 1e6,
        p50_ns: ns("50.000000"),
        p99_ns: ns("99.000000"),
    };
    Some((figures, job["error"].as_i64()))
}

fn complaint(stderr: &str, stdout: &str) -> String {
    let mut lines = stderr.lines().chain(stdout.lines());
    let line = lines.find(|line| line.starts_with("fio:"));
    line.unwrap_or("nothing was transferred").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fios_object_is_read_behind_its_messages() {
        let text = r#"fio: a message
{"jobs": [{"error": 5, "read": {"total_ios": 3, "bw_bytes": 12345678,
  "clat_ns": {"percentile": {"50.000000": 1000, "99.000000": 25000}}}}]}"#;
        let line = summary(text, &Workload::READ);
        assert_eq!(
            line.as_deref(),
            Some("12.3 MB/s, p50 1 µs, p99 25 µs, error 5")
        );
        assert_eq!(summary(text, &Workload::WRITE), None);
        assert_eq!(complaint("", text), "fio: a message");
    }
}
