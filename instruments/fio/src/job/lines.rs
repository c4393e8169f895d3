//! The text of a job file as sections with options: comments, included files, variables, the byte order mark.
//!
//! A job file may be a stranger's, and iolab's output may be public. So text from elsewhere (from variables, from included
//! files, through a link) is used and never shown: [`LinePosition::hidden`] goes with each line, and messages name it
//! instead.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::options::short;
use iolab_plan::read_user_file::{beside, leads_elsewhere, read_text};
use iolab_workload::{Error, Result};

/// Most files that are included one in the other.
const DEPTH_MAX: usize = 8;

/// Most files that are included, one that is included twice counting twice.
const INCLUDED_MAX: usize = 100;

/// Most lines of a file with all that it includes.
const LINES_MAX: usize = 100_000;

/// Most bytes of a file with everything that it includes, and with the values of variables.
const BYTES_MAX: usize = 8 << 20;

/// Sources of a job file other than its text.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The job file, relative to whose folder `include` is resolved; `None` if nothing can be included.
    pub(super) file: Option<&'a Path>,
    /// Whether files outside of that folder may be included.
    pub(super) allow_include: bool,
    /// The value of a variable of the environment.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// `[name]`.
    Section(String),
    /// `name=value`; without a value if there is no `=`, or nothing after it.
    Option(String, Option<String>),
}

/// The lines of a job file, each with its place.
pub(super) fn read(
    text: &str,
    around: Around<'_>,
    mistakes: &mut Mistakes,
) -> Vec<(LinePosition, Said)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        around,
        mistakes,
        included: 0,
        bytes: 0,
        open: around.file.map(same_name).into_iter().collect(),
        said: Vec::new(),
    };
    let hidden = around.file.is_some_and(leads_elsewhere);
    let place = |line| LinePosition {
        hidden: hidden.then_some(Hidden::Elsewhere),
        ..LinePosition::of(line)
    };
    reader.collect(text, 0, &place);
    reader.said
}

/// Reads a file and its includes.
struct Reader<'a> {
    around: Around<'a>,
    mistakes: &'a mut Mistakes,
    /// Files that were included so far.
    included: usize,
    /// Bytes that were read so far.
    bytes: usize,
    /// The files being read, each included by the one before it.
    open: Vec<PathBuf>,
    said: Vec<(LinePosition, Said)>,
}

impl Reader<'_> {
    /// Takes the lines of a file; `place` gives the position of each of them.
    fn collect(&mut self, text: &str, depth: usize, place: &dyn Fn(usize) -> LinePosition) {
        for (number, line) in text.lines().enumerate() {
            let mut place = place(number + 1);
            self.bytes = self.bytes.saturating_add(line.len());
            if self.said.len() >= LINES_MAX || self.bytes > BYTES_MAX {
                let error = Error::usage(format!(
                    "there are more than {LINES_MAX} lines or {BYTES_MAX} bytes"
                ));
                self.mistakes.add(&place, error.hint("give fewer"));
                return;
            }
            // fio cuts every line at the first of these, wherever it stands.
            let line = line.split([';', '#']).next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix("include ").map(str::trim) {
                if let Some(text) = self.include(name, &place, depth) {
                    let of_line = |line| within(&place, name, line);
                    self.collect(&text, depth + 1, &of_line);
                    self.open.pop();
                }
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                self.section(section, &place, depth);
                continue;
            }
            match expand(line, self.around.variable) {
                Ok((said, expanded)) => {
                    if let Some(bytes) = expanded {
                        self.bytes = self.bytes.saturating_add(bytes);
                        let written = Hidden::Variables(short(line));
                        place.hidden.get_or_insert(written);
                    }
                    self.said.push((place, said));
                }
                Err(error) => self.mistakes.add(&place, error),
            }
        }
    }

    /// Reads the text after the bracket that opens a section.
    fn section(&mut self, text: &str, place: &LinePosition, depth: usize) {
        let name = text.strip_suffix(']').unwrap_or_else(|| {
            let error = Error::usage("a section has no closing bracket").hint("write [name]");
            self.mistakes.add(place, error);
            text
        });
        if depth > 0 {
            let error = Error::usage("an included file has a section");
            let hint = "included files have options alone, as in fio";
            self.mistakes.add_unquoted(place, error.hint(hint));
            return;
        }
        self.said
            .push((place.clone(), Said::Section(name.trim().to_owned())));
    }

    /// The text of a file to be included; `None` if that is a mistake.
    fn include(&mut self, name: &str, place: &LinePosition, depth: usize) -> Option<String> {
        let path = self.path_of(name);
        let included = path.as_deref().map(same_name).unwrap_or_default();
        let (what, hint) = if depth >= DEPTH_MAX {
            let what = format!("more than {DEPTH_MAX} files include each other");
            (what, "include fewer")
        } else if self.included >= INCLUDED_MAX {
            let what = format!("more than {INCLUDED_MAX} files are included");
            (what, "include fewer")
        } else if self.open.contains(&included) {
            ("a file includes itself".to_owned(), "take out this line")
        } else {
            self.included += 1;
            let text = path.and_then(|path| {
                let hint = "give a text file; its name counts from the folder of the job file";
                read_text(&path).map_err(|error| error.hint(hint))
            });
            let text = text.map_err(|error| self.mistakes.add(place, error)).ok();
            self.open.extend(text.is_some().then_some(included));
            return text;
        };
        let error = Error::usage(what).hint(hint);
        self.mistakes.add_unquoted(place, error);
        None
    }

    /// Path of an included file.
    fn path_of(&self, name: &str) -> Result<PathBuf> {
        let file = self.around.file.ok_or_else(|| {
            Error::usage(format!("include {name}: there is no folder to look in"))
                .hint("put the options into the file itself")
        })?;
        let folder = file.with_file_name("");
        match self.around.allow_include {
            true => Ok(folder.join(name)),
            false => beside(&folder, name).map_err(|error| {
                error.also("--allow-include lets a job file include any file that you can read")
            }),
        }
    }
}

/// The place of a line of a file that is included at `place`.
fn within(place: &LinePosition, name: &str, line: usize) -> LinePosition {
    let (name, mut lines) = match &place.included {
        Some((name, lines)) => (name.clone(), lines.clone()),
        None => (name.to_owned(), Vec::new()),
    };
    lines.push(line);
    LinePosition {
        line: place.line,
        included: Some((name, lines)),
        hidden: Some(Hidden::Elsewhere),
    }
}

/// The one name of a file that has several.
fn same_name(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Reads an option, and replaces each `${NAME}` in its value. Returns the bytes of the value too, if it had variables.
fn expand(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<(Said, Option<usize>)> {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), value.trim()),
        None => (line, ""),
    };
    if name.contains("${") {
        return Err(Error::usage("a variable in the name of an option")
            .hint("write the option itself; its value may have variables"));
    }
    let value = match value {
        "" => None,
        value => Some(value),
    };
    let expanded = value.map(|value| filled(value, variable)).transpose()?;
    let had_any = value.is_some_and(|value| value.contains("${"));
    let given = expanded.filter(|value| !value.is_empty());
    let bytes = had_any.then(|| given.as_ref().map_or(0, String::len));
    Ok((Said::Option(name.to_owned(), given), bytes))
}

/// Substitutes `${NAME}`; fio's own words `$ncpus`, `$pagesize` and `$mb_memory` are refused.
fn filled(value: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let own = ["$ncpus", "$pagesize", "$mb_memory"];
    if let Some(word) = own.iter().find(|word| value.contains(**word)) {
        return Err(
            Error::usage(format!("{word} depends on the machine")).hint("write the number itself")
        );
    }
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else {
            return Err(Error::usage("a variable has no closing brace").hint("write ${NAME}"));
        };
        let value = variable(name).ok_or_else(|| {
            Error::usage(format!("the variable {name} is not in the environment"))
                .hint(format!("set it: {name}=VALUE iolab run JOB.fio"))
        })?;
        text.push_str(before);
        text.push_str(value.trim());
        rest = after;
        if text.len() > BYTES_MAX {
            return Err(Error::usage(format!(
                "a value with its variables has more than {BYTES_MAX} bytes"
            ))
            .hint("write the value itself"));
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;

/// Lines with mistakes after which the rest of a file is not looked at.
const MISTAKES_MAX: usize = 1000;

/// Mistakes in a job file, by their place.
#[derive(Default)]
pub(super) struct Mistakes(BTreeMap<LinePosition, Vec<Error>>);

impl Mistakes {
    /// Adds one; a mistake in `[global]` concerns every job, and is reported once.
    pub(super) fn add(&mut self, place: &LinePosition, error: Error) {
        self.put(place, place.error(error));
    }

    /// Adds a mistake that quotes nothing of the line, and may thus be shown for any line.
    fn add_unquoted(&mut self, place: &LinePosition, error: Error) {
        self.put(place, error.within(place));
    }

    /// Whether there are too many to examine the rest of the file.
    pub(super) fn are_enough(&self) -> bool {
        self.0.len() > MISTAKES_MAX
    }

    fn put(&mut self, place: &LinePosition, error: Error) {
        let of_line = self.0.entry(place.clone()).or_default();
        if of_line.len() < MISTAKES_TOLD && !of_line.contains(&error) {
            of_line.push(error);
        }
    }

    /// All mistakes as one error, in the order of their lines, each with its remedy.
    pub(super) fn told(self) -> Result<()> {
        let are_enough = self.are_enough();
        let mut all: Vec<Error> = self.0.into_values().flatten().collect();
        if all.len() <= 1 {
            return all.pop().map_or(Ok(()), Err);
        }
        let mut message = match are_enough {
            true => format!("mistakes in more than {LINES_MAX} lines"),
            false => format!("{} mistakes", all.len()),
        };
        for error in all.iter().take(MISTAKES_TOLD) {
            message.push_str(&format!("\n  {}", error.message()));
            if let Some(remedy) = error.remedy() {
                message.push_str(&format!("\n    {remedy}"));
            }
        }
        let more = all.len().saturating_sub(MISTAKES_TOLD);
        if more > 0 {
            message.push_str(&format!("\n  and {more} more"));
        }
        Err(Error::usage(message).hint(
            "correct these lines; if fio itself accepts the job, run it with fio --output-format=json+ and bring the report in with 'iolab import'",
        ))
    }
}

/// Position of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LinePosition {
    /// The number of the line in the file that was named.
    pub(super) line: usize,
    /// The file that this line includes, with the lines in that file and in further included files.
    pub(super) included: Option<(String, Vec<usize>)>,
    /// Why its text is not shown.
    pub(super) hidden: Option<Hidden>,
}

/// Why the text of a line is not shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Hidden {
    /// The value of variables of the environment is in it; so the job file writes it.
    Variables(String),
    /// The text comes from another file.
    Elsewhere,
}

impl LinePosition {
    /// A line of the file itself.
    pub(super) fn of(line: usize) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    /// An error there, without the text that is hidden.
    pub(super) fn error(&self, error: Error) -> Error {
        match &self.hidden {
            None => error,
            Some(Hidden::Variables(written)) => Error::usage(format!(
                "iolab cannot carry out {written} with what is in the environment"
            ))
            .hint("values of variables are not shown: write the value itself to see what is wrong"),
            Some(Hidden::Elsewhere) => Error::usage("iolab cannot carry out this line").hint(
                "lines of other files are not shown: look there, or write the line into the job file",
            ),
        }
        .within(self)
    }
}

/// `line 3`, `line 3 (common.fio, line 7)`.
impl fmt::Display for LinePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        let Some((file, lines)) = &self.included else {
            return Ok(());
        };
        write!(f, " ({file}")?;
        for line in lines {
            write!(f, ", line {line}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, file: Option<&Path>) -> (Vec<(usize, Said)>, String) {
        let variable = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
        let around = Around {
            file,
            allow_include: false,
            variable: &variable,
        };
        let mut mistakes = Mistakes::default();
        let said = read(text, around, &mut mistakes);
        let said = said.into_iter().map(|(place, said)| (place.line, said));
        let told = mistakes.told().err().map(|error| error.to_string());
        (said.collect(), told.unwrap_or_default())
    }

    fn given(name: &str, value: &str) -> Said {
        Said::Option(name.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn comments_variables_and_byte_order_marks_are_handled() {
        let text = "\u{feff}[a]\r\nruntime=3600  # an hour\r\nsize = ${SIZE} ; all of it\nthread\nruntime=\n";
        let (lines, told) = said(text, None);
        assert_eq!(told, "");
        assert_eq!(
            lines,
            [
                (1, Said::Section("a".to_owned())),
                (2, given("runtime", "3600")),
                (3, given("size", "64m")),
                (4, Said::Option("thread".to_owned(), None)),
                (5, Said::Option("runtime".to_owned(), None)),
            ]
        );
        let told = ["bs=${BS}", "bs=${BS", "numjobs=$ncpus", "include x.fio"].map(|text| {
            let (lines, told) = said(text, None);
            assert_eq!(lines, [], "{text}");
            told
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        line 1: the variable BS is not in the environment
          set it: BS=VALUE iolab run JOB.fio
        line 1: a variable has no closing brace
          write ${NAME}
        line 1: $ncpus depends on the machine
          write the number itself
        line 1: include x.fio: there is no folder to look in
          put the options into the file itself
        ");
    }

    #[test]
    fn files_are_included_and_not_without_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("common.fio", "direct=1\nbs=4k\n");
        write("loop.fio", "include ring.fio\n");
        write("ring.fio", "include ./loop.fio\n");
        for number in 0..9 {
            let next = format!("include {}.fio\n", number + 1);
            write(&format!("{number}.fio"), &next);
        }
        write("section.fio", "[b]\n");
        // Without a limit these would be 10,000.
        write("many.fio", &"include more.fio\n".repeat(100));
        write("more.fio", &"include common.fio\n".repeat(100));
        let job = folder.path().join("job.fio");
        let (lines, told) = said("[a]\ninclude common.fio\n", Some(&job));
        assert_eq!(told, "");
        assert_eq!(
            lines[1..],
            [(2, given("direct", "1")), (2, given("bs", "4k"))]
        );
        let told = [
            "include loop.fio", "include job.fio", "include 0.fio", "include many.fio",
            "include section.fio", "include none.fio",
        ]
        .map(|text| {
            write("job.fio", text);
            let (_, told) = said(text, Some(&job));
            // The first of many mistakes.
            told.lines().take(3).collect::<Vec<_>>().join("\n")
        });
        let folder = format!("{}", folder.path().display());
        insta::assert_snapshot!(told.join("\n").replace(&folder, "DIR"), @r"
        line 1 (loop.fio, line 1, line 1): a file includes itself
          take out this line
        line 1: a file includes itself
          take out this line
        line 1 (0.fio, line 1, line 1, line 1, line 1, line 1, line 1, line 1, line 1): more than 8 files include each other
          include fewer
        101 mistakes
          line 1 (many.fio, line 1, line 99): more than 100 files are included
            include fewer
        line 1 (section.fio, line 1): an included file has a section
          included files have options alone, as in fio
        line 1: cannot read DIR/none.fio: No such file or directory (os error 2)
          check the name, which counts from the folder of the file that names it
          --allow-include lets a job file include any file that you can read
        ");
    }
}
