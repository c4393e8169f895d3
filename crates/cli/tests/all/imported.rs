//! Reports of fio as runs: what is one series, and what is not.

use std::fs;
use std::path::Path;

use crate::support::{folder, run};

/// Requests of 4 KiB that eight runs on one disk completed in a second.
const SERIES: [u64; 8] = [39874, 39887, 40620, 39424, 40292, 39440, 40794, 40432];

/// A report of random reads of a device, of which each run is a day later.
fn report(day: usize, device: &str, requests: u64, further: &str) -> String {
    format!(
        r#"{{"fio version": "fio-3.33", "timestamp": {}, "jobs": [{{"jobname": "t", "groupid": 0, "error": 0,
        "job options": {{"rw": "randread", "bs": "4k", "iodepth": "16", "ioengine": "libaio", "direct": "1",
          "filename": "{device}", "time_based": "1", "runtime": "1"{further}}},
        "read": {{"io_bytes": {}, "total_ios": {requests}, "runtime": 1000, "clat_ns": {{}}, "lat_ns": {{}}}},
        "write": {{"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {{}}, "lat_ns": {{}}}},
        "job_runtime": 1000, "usr_cpu": 0.0, "sys_cpu": 0.0}}]}}"#,
        1_790_000_000 + day * 86_400,
        requests * 4096,
    )
}

fn import(folder: &Path, place: &str, text: &str, run_file: &str) {
    let place = folder.join(place);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("report.json"), text).unwrap();
    let report = place.join("report.json");
    run(
        folder,
        &["import", report.to_str().unwrap(), "-o", run_file],
    )
    .expect(0);
}

#[test]
fn reports_of_one_disk_are_a_series() {
    for further in [r#", "size": "1g""#, ""] {
        let folder = folder();
        let folder = folder.path();
        fs::create_dir(folder.join("runs")).unwrap();
        for (day, requests) in SERIES.into_iter().enumerate() {
            let text = report(day, "/dev/nvme0n1", requests, further);
            import(
                folder,
                &format!("day{day}"),
                &text,
                &format!("runs/{day}.iolab"),
            );
        }
        let gate = |device: &str, requests, code| {
            let name = format!("{}-{requests}.iolab", device.trim_start_matches("/dev/"));
            import(folder, "new", &report(9, device, requests, further), &name);
            let done = run(
                folder,
                &["gate", "--history", "runs", &name, "--format", "json"],
            )
            .expect(code);
            serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap()
        };
        assert_eq!(gate("/dev/nvme0n1", 40_000, 0)["history"], 8);
        assert_eq!(gate("/dev/nvme0n1", 20_379, 4)["history"], 8);
        assert_eq!(gate("/dev/sdb", 20_379, 5)["history"], 0);
    }
}
