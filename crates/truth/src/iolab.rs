//! Runs the `iolab` binary on a scene, and reads its results through its own commands.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::binary::binary;
use crate::scene::Scene;
use crate::workload::Workload;

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Exit code of the run.
    pub code: Option<i32>,
    /// Output of the run on both streams.
    pub text: String,
    /// The cells of `table --format json`.
    pub cells: Vec<Value>,
    /// The output of `export --format json`: one object per trial.
    pub samples: Vec<Value>,
}

impl Seen {
    /// A value of the only cell.
    pub fn cell(&self, name: &str) -> &Value {
        self.cells.first().map_or(&Value::Null, |cell| &cell[name])
    }

    /// A number of the only cell; NaN, for which all comparisons fail, if there is none.
    pub fn number(&self, name: &str) -> f64 {
        self.cell(name).as_f64().unwrap_or(f64::NAN)
    }

    /// Flags of the only cell, or the first one.
    pub fn flags(&self) -> Vec<&str> {
        self.cells.first().map_or(Vec::new(), flags)
    }

    /// Flags of all cells after the first one.
    pub fn flags_of_others(&self) -> Vec<&str> {
        self.cells.iter().skip(1).flat_map(flags).collect()
    }

    /// Number between two texts in the output of the run and its table.
    pub fn told(&self, before: &str, after: &str) -> Option<f64> {
        let plain: Vec<&str> = self.text.split_whitespace().collect();
        let plain = plain.join(" ");
        let (_, rest) = plain.split_once(before)?;
        rest.split_once(after)?.0.trim().parse().ok()
    }

    /// Origin of the only cell's bytes.
    pub fn served_by(&self) -> &str {
        self.cell("served_by").as_str().unwrap_or_default()
    }

    /// Whether the run or its table printed these words, ignoring line breaks.
    pub fn says(&self, words: &str) -> bool {
        let plain: Vec<&str> = self.text.split_whitespace().collect();
        plain.join(" ").contains(words)
    }

    /// Trials other than warm-ups.
    pub fn measured(&self) -> impl Iterator<Item = &Value> {
        self.samples
            .iter()
            .filter(|sample| sample["warmup"] == false)
    }

    /// Sum of a count over all trials, including the warm-up.
    pub fn total(&self, name: &str) -> u64 {
        self.samples
            .iter()
            .filter_map(|sample| sample[name].as_u64())
            .sum()
    }
}

fn flags(cell: &Value) -> Vec<&str> {
    let text = cell["flags"].as_str().unwrap_or_default();
    text.split(", ").filter(|flag| !flag.is_empty()).collect()
}

/// Runs a workload on the target of a scene.
pub fn measure(scene: &Scene, workload: &Workload) -> Seen {
    let file = scene.folder().join("run.iolab");
    let experiment = scene.folder().join("truth.toml");
    std::fs::write(&experiment, workload.for_iolab()).expect("the scene's folder can be written");
    let output = scene.carry_out(&mut command(scene, workload), |child| {
        let Some(turn) = &scene.turn else { return };
        // In the middle: after half of the trials.
        let over = || child.try_wait().is_ok_and(|status| status.is_some());
        wait_for(&file, workload.trials as usize / 2, over);
        turn.happen().expect("what is to happen can");
    });
    seen(&output.expect("iolab starts"), &file)
}

/// Runs a built-in experiment on a path in the scene's folder, with further arguments.
pub fn run(scene: &Scene, experiment: &str, target: &str, arguments: &[&str]) -> Seen {
    let file = scene.folder().join(format!("{experiment}.iolab"));
    let mut command = plain(scene);
    command
        .args(["run", experiment, target, "-o"])
        .arg(&file)
        .args(arguments);
    let output = scene.carry_out(&mut command, |_| ());
    seen(&output.expect("iolab starts"), &file)
}

/// Output of iolab on both streams for these arguments.
pub fn told(scene: &Scene, arguments: &[&str]) -> String {
    told_with_code(scene, arguments).1
}

/// Exit code of iolab for these arguments, and its output on both streams.
pub fn told_with_code(scene: &Scene, arguments: &[&str]) -> (Option<i32>, String) {
    let output = scene.carry_out(plain(scene).args(arguments), |_| ());
    answer(&output.expect("iolab starts"))
}

/// Claims in a run file in the scene's folder; empty without such a file.
pub fn claims(scene: &Scene, file: &str) -> Vec<Value> {
    list(&json(&scene.folder().join(file), "table")["claims"])
}

/// Answer to a question about the scene's target.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Exit code.
    pub code: Option<i32>,
    /// Output on both streams.
    pub text: String,
    /// Standard output, as JSON.
    pub json: Value,
}

/// Answer of `iolab fit` about the scene's target, whose data it may destroy.
pub fn fit(scene: &Scene, requirement: &str, arguments: &[&str]) -> Answered {
    let mut command = plain(scene);
    command
        .args(["fit", requirement])
        .arg(&scene.target)
        .args(["--destroy-data", "--format", "json", "--seed", "7"])
        .args(arguments);
    let output = scene.carry_out(&mut command, |_| ()).expect("iolab starts");
    Answered {
        code: output.status.code(),
        text: both(&output),
        json: serde_json::from_slice(&output.stdout).unwrap_or_default(),
    }
}

/// Evidence of `iolab witness` for a program on the scene's target, and the output of both.
pub fn witness(scene: &Scene, program: &[&str]) -> (Value, String) {
    let target = scene.target.display().to_string();
    let arguments = [&["--on", &target, "--"], program].concat();
    let (output, evidence) = witness_with(scene, &arguments, |_| ());
    (evidence, both(&output))
}

/// Output of `iolab witness` with these arguments, and its evidence; `meanwhile` is called once it runs.
pub fn witness_with(
    scene: &Scene,
    arguments: &[impl AsRef<OsStr>],
    meanwhile: impl FnOnce(&mut Child),
) -> (Output, Value) {
    let file = scene.folder().join("evidence.json");
    let mut command = plain(scene);
    command.args(["witness", "-o"]).arg(&file).args(arguments);
    let output = scene
        .carry_out(&mut command, meanwhile)
        .expect("iolab starts");
    let text = std::fs::read(&file).unwrap_or_default();
    // Another program is observed with the same scene.
    let _ = std::fs::remove_file(&file);
    (output, serde_json::from_slice(&text).unwrap_or_default())
}

pub(crate) fn seen(output: &Output, file: &Path) -> Seen {
    // A run prints only the most important findings; its table has all of them.
    let all = Command::new(binary()).arg("table").arg(file).output();
    let all = all.map_or_else(|error| error.to_string(), |output| both(&output));
    Seen {
        code: output.status.code(),
        text: format!("{}\n{all}", both(output)),
        cells: list(&json(file, "table")["cells"]),
        samples: samples(file),
    }
}

/// The JSON output of a command about a run file, which may still be written; null for none.
pub fn json(file: &Path, command: &str) -> Value {
    let mut iolab = Command::new(binary());
    let output = iolab
        .arg(command)
        .arg(file)
        .args(["--format", "json"])
        .output();
    let json = output
        .ok()
        .and_then(|output| serde_json::from_slice(&output.stdout).ok());
    json.unwrap_or_default()
}

fn list(json: &Value) -> Vec<Value> {
    json.as_array().cloned().unwrap_or_default()
}

/// Trials in a run file that may still be written.
pub fn samples(file: &Path) -> Vec<Value> {
    list(&json(file, "export"))
}

/// Text of the error among the events (`--log json`) that iolab has printed.
pub fn error_among(events: &str) -> Option<String> {
    let events = events.lines().flat_map(serde_json::from_str::<Value>);
    let mut errors = events.filter(|event| event["event"] == "error");
    errors.find_map(|event| event["text"].as_str().map(str::to_owned))
}

/// Waits until a run file has this many trials, or the run is over.
pub fn wait_for(file: &Path, trials: usize, mut over: impl FnMut() -> bool) {
    while !over() && samples(file).len() < trials {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn command(scene: &Scene, workload: &Workload) -> Command {
    let mut command = plain(scene);
    command
        .args(["run", "truth.toml"])
        .arg(&scene.target)
        .args(["-o", "run.iolab", "--seed", "7"]);
    if workload.writes {
        command.arg("--destroy-data");
    }
    if workload.cache == "direct" {
        // Requested explicitly: direct I/O is then refused where a default would fall back to the page cache.
        command.arg("--direct");
    }
    command
}

/// The binary in the scene's folder, with output that does not depend on the terminal.
fn plain(scene: &Scene) -> Command {
    let mut command = scene.command(scene.binary());
    command
        .env("COLUMNS", "160")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1");
    command
}

/// Exit code and output of a command, both streams.
pub fn answer(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), both(output))
}

fn both(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}
