//! The text of a job file as sections with options: comments, included files, variables, the byte order mark.

use std::path::{Path, PathBuf};

use iolab_plan::experiment::read_text;
use iolab_spec::{Error, Result};

use super::mistakes::Mistakes;

/// Most files that are included one in the other.
const DEPTH_MAX: usize = 8;
/// Most files that are included, one that is included twice counting twice.
const INCLUDED_MAX: usize = 100;
/// Most lines of a file with all that it includes.
const LINES_MAX: usize = 100_000;

/// Where a job file takes from what is not in its text.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The job file, from whose folder `include` counts; none where nothing can be included.
    pub(super) file: Option<&'a Path>,
    /// The value of a variable of the environment.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// `[name]`.
    Section(String),
    /// `name=value`; without a value where there is no `=`, or nothing behind it.
    Option(String, Option<String>),
}

/// What the lines say, each with the number of its line in the file that was named.
pub(super) fn read(text: &str, around: Around<'_>, mistakes: &mut Mistakes) -> Vec<(usize, Said)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        around,
        mistakes,
        included: 0,
        open: around.file.map(same_name).into_iter().collect(),
        said: Vec::new(),
    };
    reader.collect(text, 0, None);
    reader.said
}

/// Reads a file and what it includes.
struct Reader<'a> {
    around: Around<'a>,
    mistakes: &'a mut Mistakes,
    /// Files that were included so far.
    included: usize,
    /// The file under way, behind those that include it.
    open: Vec<PathBuf>,
    said: Vec<(usize, Said)>,
}

impl Reader<'_> {
    /// Takes the lines of a file; `at` is the line of the outermost `include`.
    fn collect(&mut self, text: &str, depth: usize, at: Option<usize>) {
        for (number, line) in text.lines().enumerate() {
            let number = at.unwrap_or(number + 1);
            // fio cuts every line at the first of these, wherever it stands.
            let line = line.split([';', '#']).next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if self.said.len() >= LINES_MAX {
                let error = Error::usage(format!("there are more than {LINES_MAX} lines"));
                self.mistakes.add(number, error.hint("give fewer"));
                return;
            }
            if let Some(name) = line.strip_prefix("include ").map(str::trim) {
                match self.include(name, depth) {
                    Ok(text) => {
                        self.collect(&text, depth + 1, Some(number));
                        self.open.pop();
                    }
                    Err(error) => self.mistakes.add(number, error),
                }
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                self.section(section, number, depth);
                continue;
            }
            match expand(line, self.around.variable) {
                Ok(line) => self.said.push((number, option(&line))),
                Err(error) => self.mistakes.add(number, error),
            }
        }
    }

    /// The text behind the bracket that opens a section.
    fn section(&mut self, text: &str, number: usize, depth: usize) {
        let name = text.strip_suffix(']').unwrap_or_else(|| {
            let error = Error::usage("a section has no closing bracket").hint("write [name]");
            self.mistakes.add(number, error);
            text
        });
        if depth > 0 {
            let error = Error::usage("an included file has a section");
            let hint = "included files have options alone, as in fio";
            self.mistakes.add(number, error.hint(hint));
        }
        self.said
            .push((number, Said::Section(name.trim().to_owned())));
    }

    /// The text of a file to be included.
    fn include(&mut self, name: &str, depth: usize) -> Result<String> {
        if depth >= DEPTH_MAX {
            let error = Error::usage(format!("more than {DEPTH_MAX} files include each other"));
            return Err(error.hint("include fewer"));
        }
        if self.included >= INCLUDED_MAX {
            let error = Error::usage(format!("more than {INCLUDED_MAX} files are included"));
            return Err(error.hint("include fewer"));
        }
        let Some(file) = self.around.file else {
            return Err(
                Error::usage(format!("include {name}: there is no folder to look in"))
                    .hint("put the options into the file itself"),
            );
        };
        let path = file.with_file_name("").join(name);
        let included = same_name(&path);
        if self.open.contains(&included) {
            let error = Error::usage(format!("{name} includes itself"));
            return Err(error.hint(format!("take out 'include {name}'")));
        }
        self.included += 1;
        let text = read_text(&path).map_err(|error| {
            error.hint("give a text file; its name counts from the folder of the job file")
        })?;
        self.open.push(included);
        Ok(text)
    }
}

/// The one name of a file that has several.
fn same_name(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn option(line: &str) -> Said {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(value.trim())),
        None => (line, None),
    };
    let value = value.filter(|value| !value.is_empty());
    Said::Option(name.trim().to_owned(), value.map(str::to_owned))
}

/// Puts in what `${NAME}` stands for, and fio's own words `$ncpus`, `$pagesize` and `$mb_memory`.
fn expand(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else {
            return Err(Error::usage("a variable has no closing brace").hint("write ${NAME}"));
        };
        let value = variable(name).ok_or_else(|| {
            Error::usage(format!("the variable {name} is not in the environment"))
                .hint(format!("set it: {name}=VALUE iolab run JOB.fio"))
        })?;
        text.push_str(before);
        text.push_str(&value);
        rest = after;
    }
    text.push_str(rest);
    match ["$ncpus", "$pagesize", "$mb_memory"]
        .iter()
        .find(|word| text.contains(**word))
    {
        Some(word) => {
            Err(Error::usage(format!("{word} depends on the machine"))
                .hint("write the number itself"))
        }
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, file: Option<&Path>) -> (Vec<(usize, Said)>, String) {
        let variable = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
        let around = Around {
            file,
            variable: &variable,
        };
        let mut mistakes = Mistakes::default();
        let said = read(text, around, &mut mistakes);
        let told = mistakes.told().err().map(|error| error.to_string());
        (said, told.unwrap_or_default())
    }

    fn given(name: &str, value: &str) -> Said {
        Said::Option(name.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn comments_variables_and_the_byte_order_mark_are_seen_through() {
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
        for (text, part) in [
            ("bs=${BS}", "BS is not in the environment"),
            ("bs=${BS", "closing brace"),
            ("numjobs=$ncpus", "$ncpus"),
            ("include x.fio", "no folder"),
        ] {
            let (lines, told) = said(text, None);
            assert!(lines.is_empty() && told.contains(part), "{told}");
        }
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
        // Without a bound these are 10,000.
        write("many.fio", &"include more.fio\n".repeat(100));
        write("more.fio", &"include common.fio\n".repeat(100));
        let job = folder.path().join("job.fio");
        let (lines, told) = said("[a]\ninclude common.fio\n", Some(&job));
        assert_eq!(told, "");
        assert_eq!(
            lines[1..],
            [(2, given("direct", "1")), (2, given("bs", "4k"))]
        );
        for (text, part) in [
            ("include loop.fio", "loop.fio includes itself"),
            ("include job.fio", "job.fio includes itself"),
            ("include 0.fio", "include each other"),
            ("include many.fio", "files are included"),
            ("include section.fio", "has a section"),
            ("include none.fio", "cannot read"),
        ] {
            write("job.fio", text);
            let (_, told) = said(text, Some(&job));
            assert!(told.contains(part), "{told}");
        }
    }
}
