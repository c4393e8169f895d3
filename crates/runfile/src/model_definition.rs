//! Definitions of modelled disks: iolab's own, and TOML files.

use std::path::Path;

use iolab_diskmodel::definition::{self, Definition};
use iolab_plan::read_user_file::{self, of_text};
use iolab_record::digest;
use iolab_workload::names::unknown;
use iolab_workload::{Error, Result};

/// The definition of a name in the catalogue, or of a TOML file: its text, comments included, and the parsed form.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such name, with similar ones; or a fault in the file, with line and
/// column.
pub fn model_definition(name: &str) -> Result<(String, Definition)> {
    parsed(name, text_of(name)?)
}

/// The definition with a name from a run file and the digest that the run measured. A name in a run file may be any file:
/// its text is compared before it is parsed, since parse errors quote it.
///
/// # Errors
/// As [`model_definition`]; also a definition with another digest.
pub fn measured_definition(name: &str, measured: Option<&str>) -> Result<(String, Definition)> {
    let text = text_of(name)?;
    match measured == Some(digest(text.bytes()).as_str()) {
        true => parsed(name, text),
        false => Err(other_disk(name)),
    }
}

fn other_disk(name: &str) -> Error {
    Error::usage(format!(
        "model:{name} is not the disk that the run measured: its definition has changed"
    ))
    .hint("measure again, and ask about that run")
}

fn parsed(name: &str, text: String) -> Result<(String, Definition)> {
    let definition = Definition::parse(&text)
        .map_err(|why| of_text(Path::new(name), wrong_definition(why, name)))?;
    Ok((text, definition))
}

/// The error for a definition of an impossible disk.
pub fn wrong_definition(why: String, name: &str) -> Error {
    Error::usage(why.trim_end().to_owned())
        .within(name)
        .hint("see a definition with: iolab model show hp-97560")
}

/// Largest definition of a model, bytes.
const DEFINITION_MAX: u64 = 1 << 20;

fn text_of(name: &str) -> Result<String> {
    if let Some(entry) = definition::ENTRIES.iter().find(|entry| entry.name == name) {
        return Ok(entry.text.to_owned());
    }
    let path = Path::new(name);
    if path.exists() || path.extension().is_some_and(|end| end == "toml") {
        let hint = "check the path; 'iolab model list' shows the built-in models";
        return read_user_file::text(path, DEFINITION_MAX, hint);
    }
    let known: Vec<&str> = definition::ENTRIES.iter().map(|entry| entry.name).collect();
    Err(unknown("model", name, &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_run_files_quote_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "root:x:0:0:root\n").expect("a file");
        let name = path.to_str().expect("UTF-8");
        for measured in [None, Some("1234")] {
            let error = measured_definition(name, measured).unwrap_err();
            assert_eq!(error, other_disk(name));
        }
        let text = definition::ENTRIES[0].text;
        let measured = digest(text.bytes());
        assert!(measured_definition(definition::ENTRIES[0].name, Some(&measured)).is_ok());
    }
}
