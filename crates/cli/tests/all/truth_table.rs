//! The table at the top of README: iolab's half of each row.

use std::fs;
use std::os::unix::fs::MetadataExt;

use needs::Need;

use crate::support::{folder, folder_in_memory, incompressible, run};

const BYTES: usize = 64 << 20;
/// Observations of a program at most: one that misses a file, which is open for a moment only, does not tell its source.
const LOOKS: usize = 20;
const README: &str = include_str!("../../../../README.md");

/// The command of each row, and the bold words that its output must hold.
fn rows() -> Vec<(&'static str, Vec<&'static str>)> {
    let rows = README
        .lines()
        .filter(|line| line.starts_with("| `iolab ") && line.contains("**"));
    rows.map(|row| {
        let command = row.split('`').nth(1).expect("a command");
        let bold = row.split("**").skip(1).step_by(2);
        (command, bold.collect())
    })
    .collect()
}

/// Why a row cannot hold here.
fn lacking(command: &str, said: &str, has_holes: bool) -> Option<Need> {
    match () {
        () if command.contains("sparse.img") && !has_holes => Some(Need::Holes),
        () if command.contains("witness") && said.contains("came from memory") => Some(Need::Disk),
        () => None,
    }
}

#[test]
#[cfg_attr(not(feature = "witness"), ignore = "some of the commands are witness")]
fn each_row_of_the_truth_table_holds() {
    let rows = rows();
    assert_eq!(rows.len(), 6, "{rows:?}");
    let Some(memory) = folder_in_memory() else {
        return;
    };
    let place = folder();
    let sparse = fs::File::create(place.path().join("sparse.img")).unwrap();
    sparse.set_len(BYTES as u64).unwrap();
    let has_holes = sparse.metadata().unwrap().blocks() == 0;
    fs::write(place.path().join("data"), incompressible(BYTES)).unwrap();
    for (command, bold) in rows {
        let memory = memory.path().to_str().unwrap();
        let mut words: Vec<&str> = command.split(' ').skip(1).collect();
        for word in words.iter_mut().filter(|word| **word == "/dev/shm") {
            *word = memory;
        }
        if words[0] == "run" {
            words.extend(["--size", "8M", "--time", "20ms", "--budget", "500ms"]);
        }
        let looks = if words[0] == "witness" { LOOKS } else { 1 };
        let mut said = String::new();
        for _ in 0..looks {
            let done = run(place.path(), &words).expect(0);
            let text = format!("{} {}", done.stdout, done.stderr);
            said = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if bold.iter().all(|words| said.contains(words)) {
                break;
            }
        }
        if let Some(need) = lacking(command, &said, has_holes) {
            needs::skip(need, command);
            continue;
        }
        for words in bold {
            assert!(said.contains(words), "{command}: no '{words}' in\n{said}");
        }
    }
}
