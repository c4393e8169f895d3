//! A documented command as the test runs it, with its expected result.

use std::fmt;
use std::path::Path;

use super::supplies;
use crate::support::entries;

/// Extent to which commands that measure are carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Commands plan their run, or stop at a target that does not exist.
    Plan,
    /// Commands measure for a moment.
    Measure,
}

/// Placeholders and names of the reader's system, with their replacements in the test.
const WORDS: &[(&str, &str)] = &[
    ("/mnt/disk", "disk"),
    ("/mnt/a", "disk"),
    ("/mnt/b", "disk2"),
    ("/mnt/c", "disk3"),
    ("/dev/sdb", "disk.img"),
    ("/dev/zram0", "disk.img"),
    ("TARGET", "disk"),
    ("[TARGET]", "disk"),
    ("[DIRECTORY]", "disk"),
    ("FILE", "read-size.iolab"),
    ("FILE.svg", "figure.svg"),
    ("FILE.iolab", "read-size.iolab"),
    ("FILE...", "read-size.iolab"),
    ("NEW", "new.iolab"),
    ("NEW.iolab", "new.iolab"),
    ("FOLDER", "runs"),
    ("FACTOR", "bs"),
    ("EXPERIMENT", "read-size"),
    ("MINE.toml", "mine.toml"),
    ("JOB.fio", "job.fio"),
    ("model:NAME", "model:sata-ssd"),
    ("DEFINITION", "hp-97560"),
    ("TRACE", "trace.txt"),
    ("OUTPUT", "table"),
    ("COMMAND", "echo"),
    ("'./old", "'sleep"),
    ("'./new", "'sleep 0"),
    ("x'", "0.01'"),
    ("DIR/_iolab", "_iolab"),
    ("...", ""),
];

/// Phrases of several words, with their replacements. Replaced before [`WORDS`].
const PHRASES: &[(&str, &str)] = &[
    ("--soak 1h", "--soak 1s"),
    (
        "--base FILE... --new FILE...",
        "--base a*.iolab --new b*.iolab",
    ),
    (
        "compare FILE --by buffer_memory",
        "compare memory.iolab --by buffer_memory",
    ),
    ("compare FILE --by sync", "compare durable.iolab --by sync"),
    ("compare FILE --by target", "compare run.iolab --by target"),
    ("compare FILE --by time=", "compare time.iolab --by time="),
    (
        "compare run.iolab --by FACTOR",
        "compare run.iolab --by target",
    ),
    ("run EXPERIMENT --slo", "run load-latency --slo"),
    ("EXPERIMENT TARGET TARGET ...", "read-size disk disk2"),
    ("model show NAME", "model show hp-97560"),
    ("read-random data", "read-random disk.img"),
    ("fit MINE.toml", "fit requirement.toml"),
    ("fit mine.toml", "fit requirement.toml"),
    ("--suite MINE.toml", "--suite suite.toml"),
    ("fit WHAT", "fit etcd"),
    // A process and a disk that exist. `--for=` is one word, since `--for` with a separate value is removed like
    // the other [`SIZES`].
    ("witness -p PID", "witness --for=100ms -p $PPID"),
    ("witness -p 4711", "witness --for=100ms -p $PPID"),
    // Only root can trace.
    ("witness --trace -- dd", "witness -- dd"),
    (
        "witness --device NAME",
        "witness --for=100ms --device $(find /sys/block -type l -printf %f -quit)",
    ),
    (
        "witness --device vda",
        "witness --for=100ms --device $(find /sys/block -type l -printf %f -quit)",
    ),
];

/// Options for sizes and budgets, which are removed from commands; [`tiny`] adds others.
const SIZES: &[&str] = &["--size", "--time", "--budget", "--for"];

/// Marks that end the words of the command itself.
const MARKS: &[&str] = &[" | ", " > ", " || "];

/// A target that does not exist: the last thing that a command checks before it measures.
const NOWHERE: &str = "nowhere";

/// A documented command, and its form in the test.
pub(super) struct Line {
    /// The command as documented.
    pub(super) command: String,
    /// Place of the command: document and line.
    at: String,
    /// The command as the test runs it.
    pub(super) text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  run as: {}", self.at, self.command, self.text)
    }
}

impl Line {
    /// The lines of a command: one for each alternative of a word such as `bash|zsh|fish`, otherwise one.
    pub(super) fn all_of(command: &str, at: &str, scope: Scope) -> Vec<Self> {
        let is_choice = |word: &&str| {
            word.len() > 2
                && word.contains('|')
                && word.chars().all(|c| c.is_alphanumeric() || c == '|')
        };
        let variants: Vec<String> = match command.split(' ').find(is_choice) {
            Some(choice) => choice
                .split('|')
                .map(|one| command.replace(choice, one))
                .collect(),
            None => vec![command.to_owned()],
        };
        let line = |variant: String| Self {
            command: command.to_owned(),
            at: at.to_owned(),
            text: replaced(&variant, scope),
        };
        variants.into_iter().map(line).collect()
    }

    /// Position in the order in which commands begin, the longest first.
    pub(super) fn rank(&self) -> usize {
        let slow = ["buffer-size", "fit ", "study", "--peer", "run "];
        let found = slow.iter().position(|word| self.text.contains(word));
        found.unwrap_or(slow.len())
    }

    /// Words that look like placeholders, but have no replacement in the test.
    pub(super) fn strangers(&self) -> Vec<String> {
        let words = self.text.split([' ', '"', '\'']);
        let is_strange = |word: &&str| {
            let is_shout =
                word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '.');
            let ends = [".iolab", ".toml", ".fio", ".txt", ".img"];
            let is_input = ends.iter().any(|end| word.ends_with(end));
            let is_known = supplies::has(word)
                || word.contains(['*', '[', '='])
                || self.outputs().iter().any(|file| file == word);
            (is_shout || is_input) && !is_known
        };
        let strange = words.filter(is_strange);
        strange
            .map(|word| format!("{}: '{word}' in '{}'", self.at, self.text))
            .collect()
    }

    /// Whether a text only names a command, without its arguments.
    pub(super) fn is_name_only(&self) -> bool {
        let mut words = self.text.split(' ').skip(1);
        let name = words.next().unwrap_or_default();
        let mut given = words.take_while(|word| !word.starts_with("--format"));
        !["study", "list", "doctor"].contains(&name) && given.all(|word| word.starts_with('-'))
    }

    /// Whether the command measures and writes run files.
    pub(super) fn measures(&self) -> bool {
        let own = own_words(&self.text);
        does_measure(own)
            && !own.contains(" --dry-run")
            && !own.contains(NOWHERE)
            && !own.starts_with("iolab fit ")
    }

    /// The allowed exit codes.
    pub(super) fn codes(&self) -> &'static [i32] {
        let answers = ["fit ", "--slo", "compare ", "gate ", "replay ", "time "];
        match () {
            () if self.ends_with_error().is_some() => &[2],
            () if answers.iter().any(|word| self.text.contains(word)) => &[0, 4, 5],
            // The run in the supplies has few trials.
            () if self.text.starts_with("iolab why ") => &[0, 5],
            () => &[0],
        }
    }

    /// Part of the expected error, if the target does not exist, or the supplies have no suitable run.
    pub(super) fn ends_with_error(&self) -> Option<&'static str> {
        if self.text.contains(" --ranks") {
            return Some("carried out by several ranks");
        }
        let is_serve = self.text.starts_with("iolab serve ");
        let error = if is_serve {
            "cannot mount on "
        } else {
            "cannot find nowhere"
        };
        own_words(&self.text).contains(NOWHERE).then_some(error)
    }

    /// The files and folders that the command must create.
    pub(super) fn promised(&self) -> Vec<String> {
        match self.text.contains(" --dry-run") || self.ends_with_error().is_some() {
            true => Vec::new(),
            false => self.outputs(),
        }
    }

    /// The files and folders that the command names as its output.
    pub(super) fn outputs(&self) -> Vec<String> {
        let words: Vec<&str> = self.text.split(' ').collect();
        let pairs = words
            .windows(2)
            .filter(|pair| ["-o", ">"].contains(&pair[0]));
        let files = pairs.map(|pair| pair[1].trim_matches('"').replace("$new", "script.iolab"));
        let mut files: Vec<String> = files.filter(|file| file != "-").collect();
        if self.text.starts_with("iolab study") && self.text.contains("--suite glance") {
            files.push("iolab-results/glance.png".to_owned());
        }
        files
            .iter_mut()
            .for_each(|file| *file = file.replace("~/", ""));
        files
    }

    /// The run files that the command has written, relative to the folder in which it ran.
    pub(super) fn run_files(&self, folder: &Path) -> Vec<String> {
        let is_run = |file: &String| file.ends_with(".iolab");
        let mut files: Vec<String> = self.promised().into_iter().filter(is_run).collect();
        let folders = self
            .promised()
            .into_iter()
            .chain(["iolab-results".to_owned()]);
        for written in folders.filter(|path| folder.join(path).is_dir()) {
            let names = entries(&folder.join(&written)).into_iter().filter(is_run);
            files.extend(names.map(|name| format!("{written}/{name}")));
        }
        let is_new = |file: &String| self.promised().iter().any(|path| file.starts_with(path));
        files.retain(|file| !supplies::has(file) || is_new(file));
        files
    }

    /// The peers that the command names.
    pub(super) fn peers(&self) -> impl Iterator<Item = &str> {
        let rest = self.text.split(" --peer ").skip(1);
        rest.filter_map(|rest| rest.split(' ').next())
    }
}

/// The command up to a pipe or a redirection.
fn own_words(line: &str) -> &str {
    let end = MARKS.iter().filter_map(|mark| line.find(mark)).min();
    &line[..end.unwrap_or(line.len())]
}

fn does_measure(own: &str) -> bool {
    let mut words = own.split(' ').skip(1);
    match (words.next(), words.next()) {
        (Some("run" | "fit"), Some(name)) => !name.starts_with('-'),
        (Some("study"), _) => true,
        _ => false,
    }
}

/// The command with the targets, sizes and budgets of the test.
fn replaced(command: &str, scope: Scope) -> String {
    let mut line = command.to_owned();
    for (phrase, by) in PHRASES {
        line = line.replace(phrase, by);
    }
    let mut words: Vec<&str> = Vec::new();
    let mut before = "";
    for word in line.split(' ') {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        // The files of experiment linkage have their sizes in a list.
        match (before, word) {
            (before, word) if SIZES.contains(&before) || SIZES.contains(&word) => {}
            ("--set", word) if word.starts_with("region=") => _ = words.pop(),
            _ => words.push(known.map_or(word, |known| known.1)),
        }
        before = word;
    }
    words.retain(|word| !word.is_empty());
    let line = words.join(" ");
    let own = own_words(&line);
    let rest = &line[own.len()..];
    format!("{}{rest}", brief(own, scope))
}

/// A command that measures, shortened.
fn brief(own: &str, scope: Scope) -> String {
    if own.starts_with("iolab serve model") {
        // Serving has tests of its own; here the mount is refused.
        return format!(
            "{} {NOWHERE}",
            own.rsplit_once(' ').map_or(own, |(words, _)| words)
        );
    }
    if own.starts_with("iolab time ") && !own.contains("--runs") {
        return format!("{own} --max-runs 10");
    }
    if !does_measure(own) || own.contains(" --dry-run") {
        return own.to_owned();
    }
    match scope {
        Scope::Measure => format!("{own}{}", tiny(own)),
        Scope::Plan => format!("{own}{} --dry-run", tiny(own)),
    }
}

/// Options that shorten a command that measures.
fn tiny(own: &str) -> &'static str {
    let is = |word: &str| own.contains(word);
    match () {
        () if own.starts_with("iolab fit ") => " --for 9s",
        () if is(" time=") || is(" --soak ") => " --size 8M --budget 1s",
        () if is(" --slo ") => " --size 8M --time 50ms --budget 3s",
        () if is(" linkage ") => " --set region=1,64k --budget 100ms",
        // Each size fits into the file.
        () if is(" buffer-size") && is(" bs=") => " --size 16M --budget 100ms",
        () if is(" buffer-size") => " --size 256k --budget 100ms",
        // The slowest writer of this experiment is due every 50 ms.
        () if is(" interference") => " --size 8M --time 100ms --budget 1s",
        // Tools that make passes set the size themselves.
        () if is(" --peer iozone") => " --budget 3s",
        () if is("16M") || is(" mine.toml") || is("256M") || is("--peer") => {
            " --size 64M --time 10ms --budget 100ms"
        }
        () => " --size 8M --time 10ms --budget 100ms",
    }
}
