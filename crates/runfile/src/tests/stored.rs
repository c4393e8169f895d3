//! The stored run files have the tables that this build makes.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use iolab_record::SCHEMA_VERSION;

use super::*;

#[test]
fn stored_files_have_the_present_tables() {
    let bench = Fixture::new();
    let writes = std::env::var_os("IOLAB_GOLDEN").is_some_and(|value| value == "write");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files");
    for entry in std::fs::read_dir(folder).unwrap() {
        let packed = entry.unwrap().path();
        let path = bench.path(packed.file_stem().unwrap().to_str().unwrap());
        let mut bytes = Vec::new();
        let file = File::open(&packed).unwrap();
        GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        std::fs::write(&path, bytes).unwrap();
        if writes {
            lay_anew(&path);
            let file = File::create(&packed).unwrap();
            let mut to = GzEncoder::new(file, Compression::best());
            to.write_all(&std::fs::read(&path).unwrap()).unwrap();
            to.finish().unwrap();
        }
        read(&path).unwrap();
        let connection = Connection::open(&path).unwrap();
        let checked = opening::check_ours(&connection, &path);
        checked.expect("IOLAB_GOLDEN=write cargo test -p iolab-runfile stored lays them anew");
    }
}

/// Puts the rows of a file into the tables of this build. A new column that cannot be NULL needs new files: `golden/make`.
fn lay_anew(path: &Path) {
    let file = Connection::open(path).unwrap();
    let columns = |table: &str| {
        let sql = format!("SELECT * FROM {table}");
        let statement = file.prepare(&sql).unwrap();
        let names = statement.column_names();
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    file.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON")
        .unwrap();
    let tables = opening::names(&file, opening::TABLE_NAMES).unwrap();
    for table in &tables {
        file.execute_batch(&format!("ALTER TABLE {table} RENAME TO old_{table}"))
            .unwrap();
    }
    file.execute_batch(&format!("DROP INDEX sample_once; {}", *layout::CREATE))
        .unwrap();
    for table in &tables {
        if layout::is_ours(table) {
            let had = columns(&format!("old_{table}"));
            let kept: Vec<String> = columns(table)
                .into_iter()
                .filter(|name| had.contains(name))
                .collect();
            let kept = kept.join(", ");
            file.execute_batch(&format!(
                "INSERT INTO {table} ({kept}) SELECT {kept} FROM old_{table}"
            ))
            .unwrap();
        }
        file.execute_batch(&format!("DROP TABLE old_{table}"))
            .unwrap();
    }
    file.execute_batch(&format!("PRAGMA user_version = {SCHEMA_VERSION}; VACUUM"))
        .unwrap();
}
