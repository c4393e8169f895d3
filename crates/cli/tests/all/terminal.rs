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
        "stats bad.iolab",
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
fn no_text_of_a_definition_steers_a_terminal() {
    let folder = folder();
    let place = folder.path();
    let h = HOSTILE;
    let e = escaped();
    let head = "name = 'x'\nquestion = '?'\nresponse = 'throughput'\n";
    let job = "rw=read\nsize=1m\n";
    let files = [
        (
            "a.toml",
            format!("name = \"x{e}\"\nquestion = '?'\nresponse = 'throughput'\n"),
        ),
        (
            "b.toml",
            format!("name = 'x'\nquestion = \"?{e}\"\nresponse = 'throughput'\n"),
        ),
        (
            "c.toml",
            format!("name = 'x'\nquestion = '?'\nresponse = \"a{e}.p99\"\n"),
        ),
        ("d.toml", format!("{head}[factors]\n\"bs{e}\" = [1, 2]\n")),
        (
            "e.toml",
            format!("{head}[settings]\npattern = \"rand{e}\"\n"),
        ),
        (
            "f.toml",
            format!("{head}[settings]\ncommand = \"cat {{file}} '{e}'\"\n"),
        ),
        ("g.toml", format!("{head}[group.\"a{e}\"]\nbs = 4096\n")),
        ("h.toml", format!("{head}\"{e}\" = 1\n")),
        ("i.toml", format!("{head} # {h}\n")),
        (
            "j.toml",
            format!("{head}[settings]\ntarget = \"/mnt/{e}\"\n"),
        ),
        ("a.fio", format!("[a{h}]\n{job}")),
        ("b.fio", format!("[a]\nrw=read{h}\nsize=1m\n")),
        ("c.fio", format!("[a]\n{h}=read\nsize=1m\n")),
        ("d.fio", format!("[a]\n{job}description=x{h}\n")),
        ("e.fio", format!("[a]\n{job}filename=/tmp/{h}\n")),
        ("f.fio", format!("[a]\n{job}include {h}\n")),
        ("g.fio", format!("[a]\n{job}bs=${{{h}}}\n")),
        ("h.fio", format!("[a{h}]\n{job}[b]\nrw=write\nsize=1m\n")),
    ];
    for (name, text) in &files {
        fs::write(place.join(name), text).expect("written");
        for command in [
            &["show", name][..],
            &["show", name, "--format", "fio"],
            &["run", name, "model:sata-ssd", "--dry-run"],
        ] {
            assert_harmless_output(&run(place, command), &command.join(" "));
        }
    }
}

#[test]
fn texts_of_other_inputs_do_not_control_terminal() {
    let folder = folder();
    let place = folder.path();
    let (h, e) = (HOSTILE, escaped());
    let good = run(place, &["model", "show", "sata-ssd"]).expect(0).stdout;
    let title = good.replacen("title = \"", &format!("title = \"{e}"), 1);
    let key = good.replacen("[model", &format!("\"{e}\" = 1\n[model"), 1);
    let suite = "budget = '1min'\n[[experiments]]\nuse =";
    for (name, text, command) in [
        (
            "s.toml",
            format!("name = 'x'\nabout = \"{e}\"\n{suite} \"read{e}\"\n"),
            "study model:sata-ssd --dry-run --suite FILE",
        ),
        ("m1.toml", title.clone(), "model show ./FILE"),
        ("m2.toml", title, "run read-size model:FILE --dry-run"),
        ("m3.toml", format!("# {h}\n{good}"), "model show ./FILE"),
        ("m4.toml", key, "model show ./FILE"),
        ("n.txt", format!("1\n2\n{h}\n"), "stats FILE"),
        (
            "i.json",
            format!("{{\"fio version\": \"{e}\", \"jobs\": [{{\"jobname\": \"{e}\"}}]}}"),
            "import FILE",
        ),
    ] {
        fs::write(place.join(name), text).expect("written");
        let line = command.replace("FILE", name);
        let words: Vec<&str> = line.split(' ').collect();
        assert_harmless_output(&run(place, &words), &line);
    }
}
