//! Run files: damaged byte by byte, and made with knowledge of the format.

use std::fs;
use std::io::sink;
use std::path::Path;
use std::sync::OnceLock;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, Criteria, HypothesisTest, RunSide};
use iolab_analysis::runs::RunName;
use iolab_plan::experiment::Experiment;
use iolab_record::RunRecord;
use iolab_report::answer::Answers;
use iolab_report::chart::Style;
use iolab_report::findings::cross_findings;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use iolab_report::rows::Format;
use iolab_report::{compare, document, export, run_text, table};
use iolab_runfile::RunFile;
use iolab_workload::{Error, Kind};
use rusqlite::Connection;

use crate::drive::{drive, workplace};
use crate::mutate::Mutator;
use crate::support::{folder, run};

/// Arguments of two runs that have something of everything: three factors, and programs side by side.
const RUNS: &[&[&str]] = &[
    &[
        "read-stride", "--set", "bs=4k,8k,64k", "--set", "skip=4k,64k", "--set", "threads=1,2",
        "--set", "bytes=80k", "--set", "rate=5000", "--size", "1MiB", "--buffered",
    ],
    #[cfg(feature = "programs")]
    &[
        "linkage", "--set", "command=true,cat {file}", "--set", "region=1k,4k,16k,64k",
    ],
];
const COMMON: [&str; 8] = [
    "--set", "trials_min=6", "--set", "trials_max=6", "--budget", "20s", "-o", "good.iolab",
];

/// Questions to a run.
const QUESTIONS: [&str; 2] = [
    "INSERT INTO question (id, kind) VALUES (1, 'cells');
     INSERT INTO question_level VALUES (0, 'p99<2ms', '', '', ''), (1, 'iops>100', '', '', '')",
    "INSERT INTO question (id, kind, fit_id, requirement, workload, workloads, hold_ns, not_covered, limits)
         VALUES (1, 'fit', 'f', 'etcd', 'wal', '[\"reads\", \"wal\"]', 30000000000, 'etcd', '[\"x\"]');
     INSERT INTO question_level VALUES (0, 'mean<1s', 's', 'w', 'r')",
];

/// Two good run files.
fn good_files() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let all = RUNS.iter().zip(QUESTIONS);
        all.map(|(own, question)| good_file(own, question))
            .collect()
    })
}

fn good_file(own: &[&str], question: &str) -> Vec<u8> {
    let folder = folder();
    let mut arguments = vec!["run", own[0], "."];
    arguments.extend(&own[1..]);
    arguments.extend(COMMON);
    run(folder.path(), &arguments).expect(0);
    let path = folder.path().join("good.iolab");
    let file = Connection::open(&path).expect("opens");
    file.execute_batch(question).expect("a question");
    drop(file);
    fs::read(path).expect("read")
}

/// Does with a file what the commands do that read one.
fn use_it(path: &Path) {
    match iolab_runfile::read(path) {
        Ok(record) => {
            let unanswered = AnalysedRun::of(record);
            let answered = iolab_runfile::read_latency(path)
                .and_then(|latencies| unanswered.clone().answered(latencies));
            show(&answered.unwrap_or(unanswered));
        }
        Err(error) => {
            assert!(
                matches!(error.kind(), Kind::Usage | Kind::Refused),
                "{error}"
            );
            assert!(error.message().contains("bad.iolab"), "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
    }
    let record = RunRecord::default();
    if let Ok(latencies) = iolab_runfile::read_latency(path) {
        let rows = latencies.map(|latency| {
            let latency = latency.map_err(Failure::Lab);
            latency.map(|latency| (RunName::default().into(), &record, latency))
        });
        let _ = export::buckets(rows, Format::Csv, &mut sink());
    }
    let latency = iolab_runfile::read_latency_over_time(path);
    if let (Ok(all), Ok(latency)) = (iolab_runfile::read_series(path), latency) {
        let latency: Vec<_> = latency.filter_map(Result::ok).collect();
        let rows = all.map(|series| {
            let series = series.map_err(Failure::Lab);
            series.map(|series| {
                let of_trial = (series, latency.clone());
                (RunName::default().into(), &record, of_trial)
            })
        });
        let _ = export::series(rows, Format::Csv, &mut sink());
    }
    if let Ok((file, record)) = RunFile::open_resume(path) {
        let _ = Experiment::from_toml(&record.experiment.toml, "x");
        drop(file);
    }
}

enum Failure {
    Lab(#[allow(dead_code, reason = "it is enough that there is one")] Error),
    Io(#[allow(dead_code, reason = "it is enough that there is one")] std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Shows a run as the commands do.
pub(crate) fn show(run: &AnalysedRun) {
    let record = run.record();
    let named = [("x".to_owned(), run), ("y".to_owned(), run)];
    let answers = Answers::of(named, &iolab::lists().answers);
    let _ = answers.documents().count();
    let _ = answers.screen(80);
    let analysis = run.analysis();
    let style = Style {
        width: 80,
        ascii: false,
    };
    let _ = table::table(analysis).markdown();
    let _ = run_text::text(run, &Interpretation::of(run), &style);
    let _ = cross_findings([analysis, analysis]);
    let input = Input::new("x.iolab".into(), run.clone());
    let _ = StudyReport::new(&[input]).html();
    let named = (RunName::of("x", record), run.clone());
    let named = [named.clone(), named];
    let _ = document::table(&named, &mut sink());
    let [(name, _), _] = named;
    let exported = [(name, record, run.answer())];
    let _ = export::samples(&exported, Format::Csv, &mut sink());
    #[cfg(feature = "gate")]
    over_time(run);
    let terms = Criteria {
        margin: 0.05,
        tests: vec![
            HypothesisTest::Welch,
            HypothesisTest::Student,
            HypothesisTest::MannWhitney,
        ],
        within_run: true,
        ..Criteria::default()
    };
    let side = RunSide::whole(run);
    let names = ["a", "b"].map(|name| name.to_owned().into());
    if let Ok(found) = Comparison::of_runs(names, side, side, terms) {
        let _ = compare::screen(&found, 80);
        let _ = compare::json(&found, &mut sink());
    }
}

/// Lays the run out over time.
#[cfg(feature = "gate")]
fn over_time(run: &AnalysedRun) {
    use iolab_analysis::runs::FiledRun;
    use iolab_analysis::runs::comparable_runs::Comparability;
    use iolab_gate::{line::History, line_text};

    let filed = FiledRun { file: "x", run };
    if let Ok(history) = History::of(&[filed], Comparability { any_host: false }) {
        let _ = line_text::json(&history, &mut sink());
        let _ = line_text::html(&history);
    }
}

fn fresh(path: &Path, bytes: &[u8]) {
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        let _ = fs::remove_file(beside);
    }
    fs::write(path, bytes).expect("written");
}

/// Places and new values, kept short so that they can be shown.
fn spots(mutator: &mut Mutator, length: usize) -> Vec<(usize, u8)> {
    // Most of the damage goes into the header and the schema.
    let reach = [100, 4096, 16384, length][mutator.below(4)].min(length);
    (0..=mutator.below(8))
        .map(|_| (mutator.below(reach), mutator.next() as u8))
        .collect()
}

#[test]
fn bytes_of_run_files() {
    let good = good_files();
    let folder = workplace();
    let path = folder.path().join("bad.iolab");
    drive(
        "bytes of run files",
        |mutator| {
            let number = mutator.below(good.len());
            let length = good[number].len();
            let cut = match mutator.below(6) {
                0 => mutator.below(length),
                _ => length,
            };
            (number, spots(mutator, length), cut)
        },
        |(number, spots, cut)| {
            let mut bytes = good[*number].clone();
            for (place, byte) in spots {
                bytes[*place] = *byte;
            }
            bytes.truncate(*cut);
            fresh(&path, &bytes);
            use_it(&path);
        },
    );
}

/// Columns of the tables that are read.
fn columns(path: &Path) -> Vec<(String, String)> {
    let file = Connection::open(path).expect("opens");
    let mut found = file
        .prepare(
            "SELECT s.name, c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c
             WHERE s.type = 'table' AND s.name <> 'latency'",
        )
        .expect("prepared");
    let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.expect("asked")
        .map(|row| row.expect("a row"))
        .collect()
}

/// A change to one column, or to a whole table.
fn statement(mutator: &mut Mutator, columns: &[(String, String)]) -> String {
    const VALUES: [&str; 24] = [
        "NULL", "0", "1", "-1", "2", "0.0", "-0.5", "1e-308", "1e308", "9e999",
        "9223372036854775807", "9223372036854775806", "4294967295", "4611686018427387904", "''",
        "'x'", "x'00ff'", "zeroblob(100)", "hex(zeroblob(100000))", "'[]'", "'{}'",
        "char(27, 0, 8238, 65533)", "abs(random())", "id * 1e15",
    ];
    const WHICH: [&str; 4] = [
        "", " WHERE rowid % 2", " WHERE rowid = 1", " WHERE rowid % 7 = 3",
    ];
    let (table, column) = &columns[mutator.below(columns.len())];
    let which = mutator.one_of(&WHICH);
    match mutator.below(16) {
        0 => format!("DELETE FROM {table}{which}"),
        1 => format!("ALTER TABLE {table} RENAME COLUMN {column} TO other"),
        2 => format!("UPDATE {table} SET {column} = replace({column}, 'i', char(10)){which}"),
        3 => format!("UPDATE {table} SET {column} = -{column}{which}"),
        4 => format!("UPDATE {table} SET {column} = {column} * 1000000{which}"),
        5 => format!("UPDATE {table} SET {column} = substr({column}, 2){which}"),
        _ => format!(
            "UPDATE {table} SET {column} = {}{which}",
            mutator.one_of(&VALUES)
        ),
    }
}

#[test]
fn values_in_run_files() {
    let good = good_files();
    let folder = workplace();
    let path = folder.path().join("bad.iolab");
    fresh(&path, &good[0]);
    let columns = columns(&path);
    drive(
        "values in run files",
        |mutator| {
            let number = mutator.below(good.len());
            let count = 1 + mutator.below(3);
            let sql: Vec<String> = (0..count).map(|_| statement(mutator, &columns)).collect();
            (number, sql)
        },
        |(number, sql)| {
            fresh(&path, &good[*number]);
            let file = Connection::open(&path).expect("opens");
            file.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF")
                .expect("set");
            for sql in sql {
                // SQLite refuses some statements, such as a duplicate key.
                let _ = file.execute_batch(sql);
            }
            drop(file);
            use_it(&path);
        },
    );
}

#[test]
fn latency_histograms() {
    let folder = workplace();
    let path = folder.path().join("bad.iolab");
    fresh(&path, &good_files()[0]);
    let file = Connection::open(&path).expect("opens");
    let good: Vec<Vec<u8>> = file
        .prepare("SELECT histogram FROM latency")
        .expect("prepared")
        .query_map([], |row| row.get(0))
        .expect("asked")
        .map(|row| row.expect("bytes"))
        .collect();
    let good: Vec<&[u8]> = good.iter().map(Vec::as_slice).collect();
    drive(
        "latency histograms",
        |mutator| [0; 16].map(|_| mutator.damaged(&good, &["\u{ff}", "\u{0}\u{0}\u{0}"])),
        |all| {
            for (sample, bytes) in (1..).zip(all) {
                let mut bytes = bytes.clone();
                // Without a correct length in the header, the first check refuses almost every file.
                if sample % 4 != 0 && bytes.len() >= 40 {
                    let length = (bytes.len() - 40) as u32;
                    bytes[4..8].copy_from_slice(&length.to_be_bytes());
                }
                let sql = "UPDATE latency SET histogram = ? WHERE sample_id = ?";
                file.execute(sql, rusqlite::params![bytes, sample])
                    .expect("written");
            }
            use_it(&path);
        },
    );
}
