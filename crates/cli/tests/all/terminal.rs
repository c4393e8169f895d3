//! No text of a file reaches a terminal as a command, through tables, pages, exports or messages.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::support::words::words;
use crate::support::{assert_harmless, assert_harmless_output, folder, run};

/// Commands to a terminal: set the title of a window, clear the screen, change the direction of writing, end a
/// line.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}\r\u{8}";

/// Columns that hold texts.
fn text_columns(file: &Connection) -> Vec<(String, String)> {
    let mut found = file
        .prepare(
            "SELECT s.name, c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c
             WHERE s.type = 'table' AND c.type = 'TEXT'",
        )
        .expect("prepared");
    let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows = rows.expect("asked").map(|row| row.expect("a row"));
    rows.collect()
}

/// Appends the hostile text to columns of a run file, in every row.
fn spoil(path: &Path, columns: &[(String, String)]) {
    let file = Connection::open(path).expect("opens");
    file.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
        .expect("set");
    for (table, column) in columns {
        let sql = format!("UPDATE {table} SET {column} = {column} || ?");
        // Constraints of the schema refuse some of the changes.
        let _ = file.execute(&sql, [HOSTILE]);
    }
}

#[test]
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
fn texts_of_run_file_do_not_control_terminal() {
    let folder = folder();
    let place = folder.path();
    let measure = words!(
        "run interference model:sata-ssd --set writer.rate=0,50MB/s --time 0.1s --budget 1s -o \
         good.iolab"
    );
    run(place, &measure).expect(0);
    let good = fs::read(place.join("good.iolab")).expect("read");
    let bad = place.join("bad.iolab");
    let columns = text_columns(&Connection::open(place.join("good.iolab")).expect("opens"));
    assert!(columns.len() > 30, "{columns:?}");
    // A hostile text in a column with iolab's own words makes the file unreadable.
    let mut free = Vec::new();
    for column in columns {
        fs::write(&bad, &good).expect("written");
        spoil(&bad, std::slice::from_ref(&column));
        let done = run(place, &["table", "bad.iolab"]);
        assert_harmless_output(&done, &format!("{column:?}"));
        if done.code == Some(0) {
            free.push(column);
        }
    }
    assert!(free.len() > 10, "{free:?}");
    let response = ("experiment".to_owned(), "response_group".to_owned());
    assert!(free.contains(&response), "{free:?}");
    fs::write(&bad, &good).expect("written");
    spoil(&bad, &free);
    let mut commands = vec![
        "table bad.iolab",
        "table bad.iolab --format markdown",
        "table bad.iolab --format latex",
        "table bad.iolab --full",
        "compare good.iolab bad.iolab",
        "compare bad.iolab bad.iolab --format json",
        "compare bad.iolab bad.iolab --format markdown",
        "compare --base good.iolab --new bad.iolab",
        "export bad.iolab --format csv",
        "export bad.iolab --format json",
        "export bad.iolab --format prometheus",
        "export bad.iolab --format fio",
        "resume bad.iolab",
    ];
    if cfg!(feature = "gate") {
        commands.extend(["gate --history . bad.iolab", "history . --format html"]);
    }
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        assert_harmless_output(&run(place, &words), command);
    }
    for name in ["r.html", "r.md", "r.tex", "f.svg"] {
        let command: &[&str] = match name {
            "f.svg" => &["plot", "bad.iolab", "-o", name, "--y", "throughput"],
            _ => &["report", "bad.iolab", "-o", name],
        };
        assert_harmless_output(&run(place, command).expect(0), name);
        let text = fs::read_to_string(place.join(name)).expect("written");
        assert_harmless(&text, name);
    }
}

/// The hostile text with the escapes of TOML and JSON.
fn escaped() -> String {
    let characters = HOSTILE.chars();
    characters
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect()
}

#[test]
#[cfg_attr(not(feature = "models"), ignore = "some of the inputs are models")]
fn texts_of_other_inputs_do_not_control_terminal() {
    let folder = folder();
    let place = folder.path();
    let (h, e) = (HOSTILE, escaped());
    let good = run(place, &["model", "show", "sata-ssd"]).expect(0).stdout;
    let title = good.replacen("title = \"", &format!("title = \"{e}"), 1);
    let key = good.replacen("[model", &format!("\"{e}\" = 1\n[model"), 1);
    let try_each = |ending: &str, texts: &[String], commands: &str| {
        for (number, text) in texts.iter().enumerate() {
            let name = format!("{number}.{ending}");
            fs::write(place.join(&name), text).expect("written");
            for command in commands.split("; ") {
                let line = command.replace("FILE", &name);
                let words: Vec<&str> = line.split(' ').collect();
                let what = format!("{line}: {text:?}");
                assert_harmless_output(&run(place, &words), &what);
            }
        }
    };
    let definition = "show FILE; show FILE --format fio; run FILE model:sata-ssd --dry-run";
    let head = "name = 'x'\nquestion = '?'\nresponse = 'throughput'\n";
    let definitions = [
        format!("name = \"x{e}\"\nquestion = '?'\nresponse = 'iops'\n"),
        format!("name = 'x'\nquestion = \"?{e}\"\nresponse = 'iops'\n"),
        format!("name = 'x'\nquestion = '?'\nresponse = \"a{e}.p99\"\n"),
        format!("{head}[factors]\n\"bs{e}\" = [1, 2]\n"),
        format!("{head}[settings]\npattern = \"rand{e}\"\n"),
        format!("{head}[settings]\ncommand = \"cat {{file}} '{e}'\"\n"),
        format!("{head}[group.\"a{e}\"]\nbs = 4096\n"),
        format!("{head}\"{e}\" = 1\n"),
        format!("{head} # {h}\n"),
        format!("{head}[settings]\ntarget = \"/mnt/{e}\"\n"),
    ];
    try_each("toml", &definitions, definition);
    let job = "rw=read\nsize=1m\n";
    let jobs = [
        format!("[a{h}]\n{job}"),
        format!("[a]\nrw=read{h}\nsize=1m\n"),
        format!("[a]\n{h}=read\nsize=1m\n"),
        format!("[a]\n{job}description=x{h}\n"),
        format!("[a]\n{job}filename=/tmp/{h}\n"),
        format!("[a]\n{job}include {h}\n"),
        format!("[a]\n{job}bs=${{{h}}}\n"),
        format!("[a{h}]\n{job}[b]\nrw=write\nsize=1m\n"),
    ];
    try_each("fio", &jobs, definition);
    let suite = format!("name = 'x'\nabout = \"{e}\"\nbudget = '1min'\n");
    let suite = format!("{suite}[[experiments]]\nuse = \"read{e}\"\n");
    let study = "study model:sata-ssd --dry-run --suite FILE";
    try_each("suite.toml", &[suite], study);
    let models = [title, format!("# {h}\n{good}"), key];
    let model = "model show ./FILE; run read-size model:FILE --dry-run";
    try_each("model.toml", &models, model);
    try_each("txt", &[format!("1\n2\n{h}\n")], "compare FILE FILE");
    let report = format!("{{\"fio version\": \"{e}\", \"jobs\": [{{\"jobname\": \"{e}\"}}]}}");
    try_each("json", &[report], "import FILE");
}
