//! The commands that README, the documents, `--help` and the built-in definitions show, run as they stand. Only targets,
//! sizes and budgets are replaced.
mod cargo;
mod line;
mod shown;
mod supplies;

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use crate::support::{self, folder, root, run, shell};
use line::{Line, Scope};
use supplies::{Supplies, missing};

/// Commands that run at the same time.
const AT_ONCE: usize = 2;

/// Commands that only compute or read are run. Commands that measure only plan their run, or stop at a target
/// that does not exist.
#[test]
fn commands_of_the_readme_are_understood() {
    carried_out(Scope::Plan, |at| at == "README.md", 15);
}

#[test]
#[ignore = "measures for about five minutes: cargo test -p iolab --test all documented -- --ignored"]
fn documented_commands_do_what_is_promised() {
    carried_out(Scope::Measure, |_| true, 120);
}

/// Outputs are shown up to a line `...`; only models give the same ones again.
#[test]
#[ignore = "takes ten seconds: cargo test -p iolab --test all documented -- --ignored"]
fn documented_outputs_of_models_are_current() {
    let mut stale = Vec::new();
    for page in ["README.md", "docs/TUTORIAL.md", "docs/GUIDE.md"] {
        let place = folder();
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let unshown = line.strip_prefix("    ");
            let unshown =
                unshown.filter(|line| line.starts_with("iolab run") && line.contains("model:"));
            let Some(command) = line
                .strip_prefix("$ iolab ")
                .map(|_| &line[2..])
                .or(unshown)
            else {
                continue;
            };
            let said = shell(place.path(), command).stdout;
            if unshown.is_none() {
                let shown = lines
                    .by_ref()
                    .take_while(|line| !["...", "```"].contains(line));
                let shown: Vec<&str> = shown.collect();
                if !said.lines().take(shown.len()).eq(shown.iter().copied()) {
                    stale.push(format!("{page}: {command}\n{said}"));
                }
            }
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

/// Lines of an answer stand in its output, which may wrap them differently and says more.
#[test]
#[ignore = "takes a minute: cargo test -p iolab --test all documented -- --ignored"]
fn answers_in_the_cookbook_are_current() {
    let place = folder();
    let text = fs::read_to_string(root().join("docs/COOKBOOK.md")).unwrap();
    let (_, before) = text.split_once("(Before: ").unwrap();
    let (before, text) = before.split_once(".)\n").unwrap();
    for line in before.split('`').skip(1).step_by(2) {
        shell(place.path(), line).expect(0);
    }
    let (answers, _) = text.split_once("\n```\n").unwrap();
    let (mut stale, mut asked) = (Vec::new(), 0);
    for answer in answers.split("\n$ ").skip(1) {
        let mut lines = answer.lines().take_while(|line| !line.starts_with('#'));
        let command = lines.next().unwrap();
        let done = shell(place.path(), command);
        let said = words(&format!("{} {}", done.stdout, done.stderr));
        let missing = lines.filter(|line| !said.contains(&words(line)));
        stale.extend(missing.map(|line| format!("{command}\n{line}\nis not in\n{said}")));
        asked += 1;
    }
    assert_eq!(asked, 15);
    assert!(stale.is_empty(), "{}", stale.join("\n\n"));
}

/// The text with single spaces between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_of_cargo_name_what_is_there() {
    let mistakes = cargo::mistakes(&root(), &shown::documents());
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Carries out the commands of these places, of which there are more than `least`.
fn carried_out(scope: Scope, is_asked: fn(&str) -> bool, least: usize) {
    let place = folder();
    let (mut lines, mut unknown) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let all = shown::shown(place.path()).into_iter();
    for (command, at) in all.filter(|(_, at)| is_asked(at)) {
        for line in Line::all_of(&command, &at, scope) {
            unknown.extend(line.strangers());
            if seen.insert(line.text.clone()) {
                lines.push(line);
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "line::WORDS and supplies::MAKERS lack what stands for:\n{}",
        unknown.join("\n")
    );
    assert!(
        lines.len() > least,
        "only {} commands were found",
        lines.len()
    );
    let texts: String = lines.iter().map(|line| line.text.as_str()).collect();
    let supplies = Supplies::made(&place.path().join("supplies"), AT_ONCE, &texts);
    // The longest commands start first, so that none runs alone at the end.
    lines.sort_by_key(Line::rank);
    let (queue, failures) = (Mutex::new(VecDeque::from(lines)), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some(line) = { queue.lock().unwrap().pop_front() } {
                    if let Err(why) = tried(place.path(), &supplies, &line) {
                        failures.lock().unwrap().push(format!("{line}\n  {why}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} fail:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Runs a command in a folder of its own, and looks at what it says and leaves.
fn tried(place: &Path, supplies: &Supplies, line: &Line) -> Result<(), String> {
    let own = tempfile::tempdir_in(place).unwrap();
    if line.is_name_only() {
        return names_what_there_is(own.path(), line);
    }
    if let Some(need) = missing(&line.text) {
        needs::skip(need, &line.command);
        return Ok(());
    }
    let promised = line.promised();
    supplies.lay_out(own.path(), &line.text, &line.outputs());
    let done = shell(own.path(), &line.text);
    let said = format!("{}\n{}", done.stdout, done.stderr);
    let code = done.code.unwrap_or(-1);
    if !line.codes().contains(&code) {
        return Err(format!("exit code {code}\n{said}"));
    }
    if said.contains("panicked") || said.contains("no measured trial") {
        return Err(said);
    }
    if let Some(end) = line.ends_with_error() {
        let agrees = done.stderr.contains(end);
        return agrees.then_some(()).ok_or(said);
    }
    // These commands may succeed without output.
    let is_quiet = [" resume ", " >> ", " witness "]
        .iter()
        .any(|word| line.text.contains(word));
    if promised.is_empty() && done.stdout.trim().is_empty() && !is_quiet {
        return Err(format!("it prints nothing\n{}", done.stderr));
    }
    for file in &promised {
        let path = own.path().join(file);
        if !path.is_dir() && fs::metadata(&path).map_or(0, |file| file.len()) == 0 {
            return Err(format!("{file} is missing or empty\n{said}"));
        }
    }
    match line.measures() {
        true => every_cell_is_measured(own.path(), line, &said),
        false => Ok(()),
    }
}

/// Whether the command and its options exist.
fn names_what_there_is(folder: &Path, line: &Line) -> Result<(), String> {
    let mut words = line.text.split(' ').skip(1);
    let name = words.next().unwrap_or_default();
    let help = run(folder, &[name, "--help"]);
    let unknown = words.find(|word| word.starts_with("--") && !help.stdout.contains(word));
    match (help.code, unknown) {
        (Some(0), None) => Ok(()),
        (_, option) => Err(format!("there is no {name} {}", option.unwrap_or_default())),
    }
}

/// Fails where a cell of a new run file has no measured trial, or a tool has none at all.
fn every_cell_is_measured(folder: &Path, line: &Line, said: &str) -> Result<(), String> {
    let files = line.run_files(folder);
    if files.is_empty() {
        return Err(format!("there is no run file\n{said}"));
    }
    for file in files {
        let rows = support::exported(folder, &file);
        let measured = |row: &&Value| row["warmup"] == false && row["ok"] == true;
        let cell = |row: &Value| {
            let levels = row.as_object().unwrap().iter();
            let levels = levels.filter(|(name, _)| name.starts_with("level_") || *name == "tool");
            levels
                .map(|(name, level)| format!("{name}={level} "))
                .collect::<String>()
        };
        let all: BTreeSet<String> = rows.iter().map(&cell).collect();
        let with_trials: BTreeSet<String> = rows.iter().filter(measured).map(&cell).collect();
        if let Some(empty) = all.difference(&with_trials).next() {
            return Err(format!("{file}: no measured trial of {empty}\n{said}"));
        }
        for tool in ["iolab"].into_iter().chain(line.peers()) {
            if !rows.iter().any(|row| row["tool"] == tool) {
                return Err(format!("{file}: nothing by {tool}\n{said}"));
            }
        }
    }
    Ok(())
}
