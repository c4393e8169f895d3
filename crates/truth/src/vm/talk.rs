//! Requests of the host to a guest, and the answers: one JSON object per line.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Time limit of a command in a guest if the host sets none, s.
pub const SECONDS: u64 = 120;

/// First line of a guest, which means that it is ready.
pub fn hello() -> Value {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({ "hello": kernel.trim() })
}

/// Request for a command; the answer has `code` (null after a signal), `stdout` and `stderr`.
pub fn ask_command(words: &[&str], seconds: u64) -> Value {
    json!({ "run": words, "seconds": seconds })
}

/// Answer of a guest to a request.
pub fn answer(line: &str) -> Value {
    let asked: Value = serde_json::from_str(line).unwrap_or_default();
    let Some(words) = asked["run"].as_array() else {
        return json!({ "error": format!("not understood: {line}") });
    };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    command(&words, asked["seconds"].as_u64().unwrap_or(SECONDS))
}

fn command(words: &[&str], seconds: u64) -> Value {
    let seconds = seconds.to_string();
    let output = Command::new("timeout")
        .args(["--signal=KILL", &seconds])
        .args(words)
        .stdin(Stdio::null())
        .env("COLUMNS", "1000")
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .output();
    match output {
        Ok(output) => json!({
            "code": output.status.code(),
            "stdout": String::from_utf8_lossy(&output.stdout),
            "stderr": String::from_utf8_lossy(&output.stderr),
        }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}
