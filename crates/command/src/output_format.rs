//! The format of a file named with `-o`: follows from its extension, and must not contradict it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, is_separator};

use clap::ValueEnum;
use iolab_workload::{Error, Result};

use crate::output::is_stdout;

/// Extensions of the output of any command, and extensions that users may expect.
const TELLING: [&str; 22] = [
    "doc", "docx", "eps", "jpg", "odt", "xlsx", "csv", "htm", "html", "iolab", "json", "jsonl",
    "md", "markdown", "ndjson", "pdf", "png", "prom", "svg", "tex", "toml", "txt",
];

/// Output format of a command that prints one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextOrJson {
    /// Text to read
    Text,
    /// An object, or an array of them
    Json,
}

/// Formats with the extensions of their files; the first format with an extension is the one that it selects.
pub type Extensions<F> = [(F, &'static [&'static str])];

/// Whether a name denotes a folder, or can only be one.
pub fn is_folder(named: &Path) -> bool {
    let last = named.as_os_str().as_encoded_bytes().last();
    named.is_dir() || last.is_some_and(|byte| is_separator(char::from(*byte)))
}

/// The format of an output: the requested one, otherwise the format of the extension, otherwise `default`. A requested
/// format may have a file with an extension that iolab does not know.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the extension belongs to another format, or to no format of this
/// command.
pub fn format_of<F: Copy + PartialEq>(
    named: Option<&Path>,
    asked: Option<F>,
    default: Option<F>,
    known: &Extensions<F>,
) -> Result<F> {
    let named = named.filter(|named| !is_folder(named));
    let extension = named.and_then(extension_of);
    let extension = extension.as_deref();
    let may_have_any = |extension| asked.is_some() && !TELLING.contains(&extension);
    let has = |extensions: &[&str]| extension.is_some_and(|own| extensions.contains(&own));
    // A .txt file may have any text format; it selects one only if there is a single one.
    let mut named_by = known.iter().filter(|(_, extensions)| has(extensions));
    let by_name = match extension {
        Some("txt") if named_by.clone().count() > 1 => None,
        _ => named_by.next(),
    };
    let Some(format) = asked.or(by_name.map(|(format, _)| *format)).or(default) else {
        return Err(Error::usage("no format is given")
            .hint("choose one with --format, or by the name of the file: -o FILE.csv"));
    };
    let own = known.iter().find(|(of, _)| *of == format);
    let own = own.map_or(&[][..], |(_, extensions)| extensions);
    match (named, extension) {
        (Some(named), Some(extension)) if !has(own) && !may_have_any(extension) => {
            let fit: Vec<String> = match asked {
                Some(_) => own.iter().map(|own| format!(".{own}")).collect(),
                None => {
                    let all = known.iter().flat_map(|(_, extensions)| extensions.first());
                    let all: BTreeSet<&str> = all.copied().collect();
                    all.into_iter().map(|own| format!(".{own}")).collect()
                }
            };
            let what = match asked {
                Some(_) => "the format that --format names",
                None => "a format of this command",
            };
            Err(Error::usage(format!(
                "cannot write {}: .{extension} is not {what}",
                named.display()
            ))
            .hint(format!("end the name in {}", fit.join(", "))))
        }
        _ => Ok(format),
    }
}

/// Refuses the extension of another format for a run file.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
pub fn check_run_file(named: &Path) -> Result<()> {
    check_not_stdout(named, "run.iolab")?;
    format_of(Some(named), None, Some(()), &[((), &["iolab"])])
}

/// Refuses stdout for an output that needs a name, such as `example`.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
pub fn check_not_stdout(named: &Path, example: &str) -> Result<()> {
    match is_stdout(named) {
        true => Err(
            Error::usage("this command cannot write its results to stdout")
                .hint(format!("name a place for them: -o {example}")),
        ),
        false => Ok(()),
    }
}

/// Refuses the extension of a file for a folder.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
pub fn check_folder(named: &Path) -> Result<()> {
    check_not_stdout(named, "results")?;
    let extension = extension_of(named).filter(|_| !is_folder(named));
    match extension.filter(|extension| TELLING.contains(&extension.as_str())) {
        Some(extension) => Err(Error::usage(format!(
            "-o names a folder here, and {} ends in .{extension}",
            named.display()
        ))
        .hint("name a folder: iolab writes its files into it")),
        None => Ok(()),
    }
}

/// The extension in lower case; `None` if the name ends in a number, as `run-1.5`.
fn extension_of(named: &Path) -> Option<String> {
    let extension = named.extension().and_then(OsStr::to_str)?;
    let is_one = extension.starts_with(|first: char| first.is_ascii_alphabetic());
    is_one.then(|| extension.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &Extensions<u8> = &[(1, &["html", "htm"]), (2, &["json"]), (3, &["json"])];

    #[test]
    fn a_text_may_have_several_formats() {
        let known: &Extensions<u8> = &[(1, &["prom", "txt"]), (2, &["txt"])];
        let found = |asked| format_of(Some(Path::new("t.txt")), asked, None, known).ok();
        assert_eq!((found(None), found(Some(2))), (None, Some(2)));
    }

    #[test]
    fn the_extension_decides_where_nothing_is_asked() {
        for (named, asked, format) in [
            (Some("t.html"), None, Some(1)),
            (Some("t.HTM"), None, Some(1)),
            (Some("t.json"), None, Some(2)),
            (Some("t.json"), Some(3), Some(3)),
            (Some("t.json"), Some(1), None),
            (Some("t.pdf"), None, None),
            (Some("t.pdf"), Some(1), None),
            (Some("t.foo"), None, None),
            (Some("t.foo"), Some(2), Some(2)),
            // No extension, or one that does not select a format.
            (Some("run-1.5"), None, Some(1)),
            (Some("run-1.5"), Some(2), Some(2)),
            (Some("new/"), Some(2), Some(2)),
            (Some("/tmp"), None, Some(1)),
            (None, None, Some(1)),
        ] {
            let found = format_of(named.map(Path::new), asked, Some(1), KNOWN);
            assert_eq!(found.ok(), format, "{named:?} {asked:?}");
        }
        assert!(format_of(None, None, None, KNOWN).is_err());
    }

    #[test]
    fn run_files_and_folders_reject_foreign_extensions() {
        assert!(check_run_file(Path::new("r.iolab")).is_ok());
        assert!(check_run_file(Path::new("r.csv")).is_err());
        assert!(check_run_file(Path::new("r.foo")).is_err());
        assert!(check_run_file(Path::new("run-1.5")).is_ok());
        assert!(check_folder(Path::new("results.html")).is_err());
        assert!(check_folder(Path::new("results")).is_ok());
        assert!(check_folder(Path::new("-")).is_err());
        assert!(check_run_file(Path::new("-")).is_err());
        assert!(check_folder(Path::new("results.d")).is_ok());
    }
}
