//! Creates a run file atomically: if the process is killed, there is no file.
//!
//! The tables of a run file for SQLite, generated from [`iolab_record::tables`], and their initial content.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use std::{io, thread};

use iolab_record::column::{Access, Column, Null, Table};
use iolab_record::environment::Environment;
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, CellRow, DRIVE_LOG, ENVIRONMENT, EVENT, EXPERIMENT, Fact,
    GROUP_SAMPLE, GroupRow, LATENCY, LATENCY_OVER_TIME, PART, PREPARATION, QUESTION,
    QUESTION_LEVEL, RANK, RUN, SAMPLE, SERIES, TARGET, WITNESS,
};
use iolab_record::{Cell, ExperimentRecord, Run, SCHEMA_VERSION};
use iolab_workload::{Error, Result};
use rusqlite::Connection;

use super::error::file_fault;
use super::opening::check_length;
use super::rows::Tables;
use super::system::{OpenFolder, SIDE_FILES, folder_of};
use super::{error, opening, read, system};

/// Extension of run files.
const EXTENSION: &str = "iolab";

/// Most numbered names to try.
const NAMES_MAX: u32 = 100_000;

/// The path of a new run file. No file is ever overwritten.
#[derive(Debug, Clone, Copy)]
pub enum NewFile<'a> {
    /// This path; refused if it exists.
    At(&'a Path),
    /// The first free path of `NAME.iolab`, `NAME-2.iolab`, ... in a folder when the run begins, also when others begin at the
    /// same time.
    In {
        /// The folder. A run makes it with the file, if there is none.
        folder: &'a Path,
        /// The first name.
        name: &'a str,
    },
    /// A name in a folder that was opened before.
    Within(&'a Folder, FileName<'a>),
}

/// The name of a new run file.
#[derive(Debug, Clone, Copy)]
pub enum FileName<'a> {
    /// The name at the end of this path.
    Exactly(&'a Path),
    /// The first free one of `NAME.iolab`, `NAME-2.iolab`, ...
    First(&'a str),
}

impl FileName<'_> {
    /// The name with this number, from 1.
    fn numbered(self, number: u32) -> OsString {
        match (self, number) {
            (Self::Exactly(path), _) => path.file_name().unwrap_or_default().to_owned(),
            (Self::First(name), 1) => format!("{name}.{EXTENSION}").into(),
            (Self::First(name), _) => format!("{name}-{number}.{EXTENSION}").into(),
        }
    }
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for NewFile<'a> {
    fn from(path: &'a P) -> Self {
        Self::At(path.as_ref())
    }
}

impl<'a> NewFile<'a> {
    /// The folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::In { folder, .. } => folder,
            Self::Within(folder, _) => &folder.path,
            Self::At(path) => folder_of(path),
        }
    }

    pub(super) fn own_name(self) -> FileName<'a> {
        match self {
            Self::At(path) => FileName::Exactly(path),
            Self::In { name, .. } => FileName::First(name),
            Self::Within(_, name) => name,
        }
    }

    /// The path with this number, from 1.
    pub(super) fn name(&self, number: u32) -> PathBuf {
        match self.own_name() {
            FileName::Exactly(path) => path.to_owned(),
            name @ FileName::First(_) => self.folder().join(name.numbered(number)),
        }
    }
}

/// Creates the file with this content, locked (`flock`) from the start if the file system supports that.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the path exists; also if it cannot be written. Leaves no file
/// then.
pub(super) fn create(place: NewFile<'_>, content: &[u8]) -> Result<(PathBuf, File)> {
    in_folder(place, |folder| {
        let created = attempt(folder, place, content);
        created.map_err(|error| fault(place, &place.name(1), &error))
    })
}

/// Calls a function with the folder of a place, which was opened before or is opened for it.
///
/// # Errors
///
/// As [`Folder::of`]; errors of the function.
pub(super) fn in_folder<T>(
    place: NewFile<'_>,
    make: impl FnOnce(&Folder) -> Result<T>,
) -> Result<T> {
    match place {
        NewFile::Within(folder, _) => make(folder),
        NewFile::At(_) | NewFile::In { .. } => make(&Folder::of(place)?),
    }
}

/// Creates the file in an open folder, the folder of the place, with errors of the file system; returns its path too.
pub(super) fn attempt(
    folder: &Folder,
    place: NewFile<'_>,
    content: &[u8],
) -> io::Result<(PathBuf, File)> {
    // Some file systems lack unnamed files; other errors are reported better by the ordinary way.
    let made = unnamed(&folder.open, content).and_then(|file| {
        let (number, ()) = first_free(folder, place, |name| folder.open.link(&file, name))?;
        // Nothing may fail after this, since the file has its name.
        Ok((number, file))
    });
    let named = |name: &OsStr| named(&folder.open, name, content);
    let (number, file) = made.or_else(|_| first_free(folder, place, named))?;
    Ok((place.name(number), file))
}

/// The number of the first name at which `make` finds no file.
fn first_free<T>(
    folder: &Folder,
    place: NewFile<'_>,
    make: impl Fn(&OsStr) -> io::Result<T>,
) -> io::Result<(u32, T)> {
    let last = match place.own_name() {
        FileName::Exactly(_) => 1,
        FileName::First(_) => NAMES_MAX,
    };
    let mut number = 1;
    loop {
        let name = place.own_name().numbered(number);
        let is_taken = companions(&name).any(|name| folder.open.has(&name));
        let made = match is_taken {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => make(&name),
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < last => {
                number += 1;
            }
            made => return made.map(|made| (number, made)),
        }
    }
}

/// The error for a file that is not created; `name` is its path for messages.
pub(super) fn fault(place: NewFile<'_>, name: &Path, error: &io::Error) -> Error {
    match (place.own_name(), error.kind()) {
        (FileName::Exactly(path), io::ErrorKind::AlreadyExists) => taken(path),
        _ => file_fault(name, "create", error),
    }
}

/// Checks that no file has this path, nor one that SQLite would take for a part of it.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused).
pub(super) fn check_free(path: &Path) -> Result<()> {
    let mut all = companions(path.as_os_str()).chain([path.as_os_str().to_owned()]);
    match all.any(|name| Path::new(&name).symlink_metadata().is_ok()) {
        false => Ok(()),
        true => Err(taken(path)),
    }
}

/// The error for an existing file at `path`, or for one that SQLite would take for a part of it.
fn taken(path: &Path) -> Error {
    let own = path.symlink_metadata().is_ok();
    let companion = companions(path.as_os_str())
        .map(PathBuf::from)
        .find(|name| name.symlink_metadata().is_ok());
    match companion {
        Some(companion) if !own => Error::refused(format!(
            "{} exists already, and would be taken for a part of {}",
            companion.display(),
            path.display()
        ))
        .hint(
            "it is a remainder of another run file of this name: name another file with -o, or remove it",
        ),
        _ => file_fault(path, "create", &io::ErrorKind::AlreadyExists.into()),
    }
}

/// The files that SQLite takes for parts of a database.
fn companions(of: &OsStr) -> impl Iterator<Item = OsString> {
    SIDE_FILES.into_iter().map(move |ending| {
        let mut name = of.to_owned();
        name.push(ending);
        name
    })
}

/// A file with this content and without a name, which disappears unless it gets one.
fn unnamed(folder: &OpenFolder, content: &[u8]) -> io::Result<File> {
    let mut file = folder.unnamed()?;
    file.write_all(content)?;
    file.sync_all()?;
    // Without locks in the file system, the run file stays unlocked, like its writer's.
    let _ = file.try_lock();
    Ok(file)
}

fn named(folder: &OpenFolder, name: &OsStr, content: &[u8]) -> io::Result<File> {
    let mut file = folder.create_new(name)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // This process has just created it.
        folder.remove(name);
        return Err(error);
    }
    Ok(file)
}

/// Number of times that a folder is opened again if another process removes it.
const ATTEMPTS_MAX: u32 = 100;

/// Time before that, in which the other process goes on.
const PAUSE: Duration = Duration::from_micros(100);

/// An open folder for new run files. Dropping it removes the folders that it made, if nothing is in them.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    open: OpenFolder,
    /// The outermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Opens the folder of a place, and makes it if it is missing. A file with an explicit name needs an existing folder.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be made or opened; of kind
    /// [`Refused`](iolab_workload::Kind::Refused): it is a link of another user in a folder that all may write to.
    pub fn of(place: NewFile<'_>) -> Result<Self> {
        let path = place.folder();
        check_length(&place.name(1))?;
        check_links(path)?;
        let mut made = Vec::new();
        for attempt in 1.. {
            let opened = match place {
                NewFile::In { .. } => make(path, &mut made),
                NewFile::At(_) | NewFile::Within(..) => Ok(()),
            };
            let opened = match opened {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unmade_folder(path, "the run files", &error));
                }
                made => made.and_then(|()| OpenFolder::open(path)),
            };
            match opened {
                Ok(open) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        open,
                        made,
                    });
                }
                // Another process that made the folder removes it while it is empty: on NFS its handle is stale then.
                Err(error) if attempt < ATTEMPTS_MAX && is_gone(&error, place) => {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(fault(place, &place.name(1), &error)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// As [`Folder::of`], for files of several names.
    ///
    /// # Errors
    /// As [`Folder::of`].
    pub fn make(path: &Path) -> Result<Self> {
        Self::of(NewFile::In {
            folder: path,
            name: "",
        })
    }

    /// A file with the first free name of `NAME.iolab`, `NAME-2.iolab`, ... in this folder.
    pub fn file<'a>(&'a self, name: &'a str) -> NewFile<'a> {
        NewFile::Within(self, FileName::First(name))
    }

    /// A new file in this folder, which is the folder of the place.
    pub fn place<'a>(&'a self, place: NewFile<'a>) -> NewFile<'a> {
        NewFile::Within(self, place.own_name())
    }

    /// Removes a file created by iolab in this folder with everything that SQLite put next to it. The file itself comes last, since
    /// its name is needed to find the others after a kill.
    pub(crate) fn remove(&self, path: &Path) {
        for suffix in SIDE_FILES.into_iter().chain([""]) {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(suffix);
            self.open.remove(&name);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Another process that has it open is about to use it.
        if self.made.is_empty() || !self.open.is_ours_alone() {
            return;
        }
        for folder in self.made.iter().rev() {
            // One with a file in it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Makes a folder with its missing parents, and adds them to `made`. The error is `NotFound` if another process removes one
/// meanwhile.
fn make(folder: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let named = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
    let mut missing: Vec<&Path> = named.take_while(|at| !at.is_dir()).collect();
    while let Some(next) = missing.pop() {
        if made_or_there(next)? {
            made.push(next.to_owned());
        }
    }
    Ok(())
}

/// Makes a folder; returns whether it was missing. The error is `NotFound` if another process removes it, or one of its
/// parents, meanwhile.
fn made_or_there(folder: &Path) -> io::Result<bool> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match folder.metadata() {
            Ok(other) if other.is_dir() => Ok(false),
            Err(removed) if !folder.is_symlink() => Err(removed),
            _ => Err(error),
        },
        made => made.map(|()| true),
    }
}

fn is_gone(error: &io::Error, place: NewFile<'_>) -> bool {
    matches!(
        (error.kind(), place),
        (
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle,
            NewFile::In { .. }
        )
    )
}

/// Refuses a folder whose path has a link of another user in a folder in which every user makes names, such as `/tmp`.
fn check_links(path: &Path) -> Result<()> {
    let named = path.ancestors().filter(|at| !at.as_os_str().is_empty());
    match named.into_iter().find(|at| system::is_foreign_link(at)) {
        None => Ok(()),
        Some(link) => Err(Error::refused(format!(
            "refusing to write run files through {}, a link of another user in a folder of all users",
            link.display()
        ))
        .hint("name a folder of your own with -o")),
    }
}

/// The error for a folder that cannot be made for these files.
pub fn unmade_folder(folder: &Path, files: &str, error: &io::Error) -> Error {
    Error::usage(format!(
        "cannot make the folder {} for {files}: {error}",
        folder.display()
    ))
    .hint("name a place that can be written with -o")
}

/// The bytes of a file with its plan and without samples. They say that it has a log, as it will have during the run: a reader that took it
/// for a plain file would wait for the lock of its writer.
pub(super) fn laid_out(
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<Vec<u8>> {
    let mut content = with_tables(|tables| {
        tables.insert(&RUN, run)?;
        write_environment(tables, environment)?;
        tables.insert(&EXPERIMENT, experiment)?;
        if let Some(asked) = &experiment.asked {
            read::write(tables, asked)?;
        }
        write_cells(tables, experiment, cells)
    })?;
    opening::set_mode(&mut content, opening::WITH_LOG);
    Ok(content)
}

/// The bytes of a file with all tables and what `write` writes to them.
pub(super) fn with_tables(write: impl FnOnce(&Tables<'_>) -> Result<()>) -> Result<Vec<u8>> {
    // Errors here have no file.
    let nowhere = Path::new("the new run file");
    let wrong = |error| error::fault(nowhere, &error);
    let mut memory = Connection::open_in_memory().map_err(wrong)?;
    let identity = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {SCHEMA_VERSION}; BEGIN;",
        APPLICATION_ID
    );
    for sql in [identity.as_str(), &CREATE] {
        memory.execute_batch(sql).map_err(wrong)?;
    }
    write(&Tables::new(&memory, nowhere))?;
    memory.execute_batch("COMMIT").map_err(wrong)?;
    let content = memory.serialize("main").map_err(wrong)?;
    Ok(content.to_vec())
}

pub(super) fn write_environment(tables: &Tables<'_>, environment: &Environment) -> Result<()> {
    for (position, (key, value)) in environment.iter().enumerate() {
        let fact = Fact {
            host: 0,
            position: position as u64,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        tables.insert(&ENVIRONMENT, &fact)?;
    }
    Ok(())
}

pub(super) fn write_cells(
    tables: &Tables<'_>,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<()> {
    for cell in cells {
        let levels: serde_json::Map<String, serde_json::Value> = experiment
            .factors
            .iter()
            .zip(&cell.levels)
            .map(|(factor, level)| (factor.clone(), level.as_str().into()))
            .collect();
        let row = CellRow {
            cell: cell.clone(),
            levels: serde_json::Value::Object(levels).to_string(),
        };
        tables.insert(&CELL, &row)?;
        for (id, group) in (1..).zip(&cell.spec.groups) {
            let row = GroupRow {
                cell: cell.id,
                id,
                name: group.name.clone(),
                target: 0,
                spec: group.spec.clone(),
            };
            tables.insert(&CELL_GROUP, &row)?;
        }
    }
    Ok(())
}

/// Marks a SQLite file as a run file: `IOLB`.
pub(crate) const APPLICATION_ID: i64 = 0x494F_4C42;

/// The name of each table with the statement that creates it. Constraints guard against mistakes of the writer; readers do not
/// trust them.
static TABLES: LazyLock<[(&str, String); 20]> = LazyLock::new(|| {
    let (sample, mut create_sample) = table_sql(&SAMPLE, "");
    create_sample
        .push_str("CREATE UNIQUE INDEX sample_once ON sample (cell_id, block) WHERE ok = 1;\n");
    [
        table_sql(&RUN, ""),
        table_sql(&TARGET, ""),
        table_sql(&RANK, ""),
        table_sql(&ENVIRONMENT, " WITHOUT ROWID"),
        table_sql(&EXPERIMENT, ""),
        table_sql(&QUESTION, ""),
        table_sql(&QUESTION_LEVEL, ""),
        table_sql(&CELL, ""),
        table_sql(&CELL_GROUP, " WITHOUT ROWID"),
        (sample, create_sample),
        table_sql(&GROUP_SAMPLE, " WITHOUT ROWID"),
        table_sql(&CLIENT_SAMPLE, " WITHOUT ROWID"),
        table_sql(&PART, " WITHOUT ROWID"),
        table_sql(&LATENCY, " WITHOUT ROWID"),
        table_sql(&SERIES, " WITHOUT ROWID"),
        table_sql(&LATENCY_OVER_TIME, " WITHOUT ROWID"),
        table_sql(&DRIVE_LOG, " WITHOUT ROWID"),
        table_sql(&PREPARATION, ""),
        table_sql(&EVENT, ""),
        table_sql(&WITNESS, ""),
    ]
});

/// Creates all tables.
pub(crate) static CREATE: LazyLock<String> =
    LazyLock::new(|| TABLES.iter().map(|(_, create)| create.as_str()).collect());

/// An empty run file in memory.
pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&CREATE)?;
    Ok(connection)
}

/// Whether a run file has a table with this name.
pub(crate) fn is_ours(name: &str) -> bool {
    TABLES.iter().any(|(table, _)| *table == name)
}

fn table_sql<T>(table: &Table<T>, options: &str) -> (&'static str, String) {
    let columns = table.stored().map(declaration);
    let constraints = table.constraints.iter().map(|text| (*text).to_owned());
    let lines: Vec<String> = columns.chain(constraints).collect();
    let create = format!(
        "CREATE TABLE {} (\n    {}\n){options};\n",
        table.name,
        lines.join(",\n    ")
    );
    (table.name, create)
}

fn declaration<T>(column: &Column<T>) -> String {
    let name = column.name;
    if column.key {
        return format!("{name} INTEGER PRIMARY KEY CHECK ({name} >= 0)");
    }
    let mut text = format!("{name} {}", type_name(column));
    if column.null == Null::Never {
        text.push_str(" NOT NULL");
    }
    let check = match column.access {
        Access::Flag(..) => format!("{name} IN (0, 1)"),
        Access::Number(..) => format!("{name} >= {}", column.bounds.0),
        Access::Text(..) if !column.words.is_empty() => {
            format!("{name} IN ('{}')", column.words.join("', '"))
        }
        _ => return text,
    };
    let _ = write!(text, " CHECK ({check})");
    text
}

/// The SQLite type of a column.
fn type_name<T>(column: &Column<T>) -> &'static str {
    match &column.access {
        Access::Number(..) | Access::Flag(..) => "INTEGER",
        Access::Real(..) => "REAL",
        Access::Text(..) => "TEXT",
        Access::Bytes(..) => "BLOB",
        Access::Setting(setting, ..) => match setting.kind.is_number() {
            true => "INTEGER",
            false => "TEXT",
        },
    }
}
