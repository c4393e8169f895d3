//! Text files with one number per line, from other programs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::Path;

use iolab_plan::read_user_file::{self, of_text};
use iolab_workload::{Error, Result, usage_errors};

/// Largest file, bytes: more than ten million numbers.
const BYTES_MAX: u64 = 256 << 20;
/// Longest line, bytes.
const LINE_MAX: usize = 4096;
const HINT: &str =
    "give a run file (NAME.iolab), a text file with one number per line, or - for standard input";
/// The first bytes of every SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Whether the file at `path` is an SQLite database instead of text.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be read.
pub fn is_database(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    open(path)?
        .take(SQLITE.len() as u64)
        .read_to_end(&mut head)
        .map_err(|error| unreadable(path, &error))?;
    Ok(head == SQLITE)
}

/// Reads the numbers in the file at `path`; `-` is the standard input.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be read, a line is not a number (with the line's number), or there is
/// no number.
pub fn read(path: &Path) -> Result<Vec<f64>> {
    if path == Path::new("-") {
        return parse(io::stdin().lock(), Path::new("standard input"));
    }
    parse(BufReader::new(open(path)?), path)
}

fn open(path: &Path) -> Result<Take<File>> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    read_user_file::check(&metadata, path).map_err(|why| Error::usage(why).hint(HINT))?;
    read_user_file::open(path, &metadata).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("cannot read {}: {error}", path.display())).hint(HINT)
}

/// Parses one number per line; skips empty lines and text after `#`.
fn parse(text: impl BufRead, path: &Path) -> Result<Vec<f64>> {
    let mut text = text.take(BYTES_MAX + 1);
    let mut numbers = Vec::new();
    let mut line = Vec::new();
    for row in 1.. {
        line.clear();
        let read = (&mut text)
            .take(LINE_MAX as u64)
            .read_until(b'\n', &mut line)
            .map_err(|error| unreadable(path, &error))?;
        if read == 0 {
            break;
        }
        numbers.extend(number(&line).map_err(|shown| no_number(path, row, &shown))?);
    }
    usage_errors! {
        text.limit() == 0 => format!("{} is larger than 256 MiB", path.display()), "give the numbers of one series only";
        numbers.is_empty() => format!("there is no number in {}", path.display()), "write one number per line";
    }
    Ok(numbers)
}

/// The number of a line, or `None` for an empty one; an error with the text that is not a number.
fn number(line: &[u8]) -> std::result::Result<Option<f64>, String> {
    let line = String::from_utf8_lossy(line);
    let text = line.split('#').next().unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(text.chars().take(40).collect()),
    }
}

fn no_number(path: &Path, row: usize, shown: &str) -> Error {
    let error = Error::usage(format!(
        "line {row} of {} is not a number: {shown:?}",
        path.display()
    ));
    of_text(
        path,
        error.hint("write one finite number a line, such as 12.5 or 3e6, without units; '#' begins a remark"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &[u8]) -> Result<Vec<f64>> {
        parse(text, Path::new("a.txt"))
    }

    #[test]
    fn numbers_remarks_and_empty_lines() {
        let text = b"# a run\n1\n\n 2.5 \r\n-3e-2 # slow\n4";
        assert_eq!(of(text).unwrap(), [1.0, 2.5, -0.03, 4.0]);
    }

    #[test]
    fn invalid_numbers_are_named_with_their_line() {
        let wrong = [
            &b"1\n2 3\n"[..],
            b"1,5\n",
            b"nan\n",
            b"1\n\ninf\n",
            b"1e999\n",
            b"12 MB/s\n",
            b"\xff\xfe\n",
            b"",
            b"# only a remark\n",
        ];
        let told = wrong.map(|text| of(text).unwrap_err().message().to_owned());
        insta::assert_snapshot!(told.join("\n"), @r#"
        line 2 of a.txt is not a number: "2 3"
        line 1 of a.txt is not a number: "1,5"
        line 1 of a.txt is not a number: "nan"
        line 3 of a.txt is not a number: "inf"
        line 1 of a.txt is not a number: "1e999"
        line 1 of a.txt is not a number: "12 MB/s"
        line 1 of a.txt is not a number: "��"
        there is no number in a.txt
        there is no number in a.txt
        "#);
        let endless = vec![b'7'; 1 << 20];
        assert!(
            of(&endless).is_err(),
            "a line without an end is not a number"
        );
    }

    proptest! {
        #[test]
        fn every_number_comes_back(numbers in prop::collection::vec(-1e300..1e300f64, 1..50)) {
            let text: String = numbers.iter().map(|n| format!("{n}\n")).collect();
            prop_assert_eq!(of(text.as_bytes()).unwrap(), numbers);
        }

        #[test]
        fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = of(&text);
        }
    }
}
