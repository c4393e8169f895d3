//! The run file: one SQLite file per run, written sample by sample. docs/RUNFILE.md has the schema.
//!
//! While a run is measured the file is in WAL mode and readers may look on. When the run ends,
//! whatever the reason, everything is brought into the one plain file. A process that is killed
//! leaves `FILE-wal` beside it; both together are complete, and reading them is enough.

mod before_5;
mod create;
mod fault;
mod guard;
mod latency;
mod place;
mod read;
mod rows;
mod schema;
mod series;
#[cfg(test)]
pub(crate) mod tests;
mod upgrade;

use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use iolab_spec::histogram::LatencyHistogram;
use iolab_spec::trial::Batch;
use iolab_spec::{Error, Result};
use rusqlite::{Connection, OpenFlags, Params, params};
use rustix::fs::{FlockOperation, flock};

pub use create::NewFile;
use fault::{
    damaged, fault, file_fault, is_unopenable, newer, not_a_run_file, older, too_large,
    while_writing,
};
use iolab_record::environment::Environment;
use iolab_record::tables::{
    CELL, CellRow, ENVIRONMENT, EVENT, EXPERIMENT, Fact, IntervalRow, LATENCY, LatencyRow, PART,
    RUN, SAMPLE, SERIES,
};
use iolab_record::{
    Cell, EndedBy, Event, ExperimentRecord, LatencyOf, Part, PartId, Run, RunRecord, RunStatus,
    SCHEMA_VERSION, Sample, SampleLatency, SampleSeries, Series,
};
pub use place::check_place;

/// The oldest schema version whose runs are taken up again; earlier ones measured less.
const UPGRADED_FROM: i64 = 4;

/// A run file that is being written. Dropping it keeps everything written so far.
#[derive(Debug)]
pub struct RunFile {
    // Declared before the lock: closing any descriptor of a file drops SQLite's own locks on it.
    connection: Connection,
    /// Held as long as this process writes, so that no other does.
    lock: File,
    path: PathBuf,
    marked_running: bool,
    /// Whether its name led to it when it was opened: some file systems show another file then.
    is_traceable: bool,
}

impl RunFile {
    /// Creates a run file with its plan, and no sample yet. It is there whole, or not at all.
    ///
    /// # Errors
    /// Of kind refused when there is a file of this name; nothing is ever overwritten. When it
    /// cannot be written; nothing is left behind then.
    pub fn create<'a>(
        place: impl Into<NewFile<'a>>,
        run: &Run,
        environment: &Environment,
        experiment: &ExperimentRecord,
        cells: &[Cell],
    ) -> Result<Self> {
        let place = place.into();
        place::check_length(&place.name(1))?;
        let content = laid_out(run, environment, experiment, cells)?;
        let (path, file) = create::create(place, &content)?;
        let created = Self::locked(&path, file).and_then(|mut created| {
            created.marked_running = run.status == RunStatus::Running;
            created.enter_wal()?;
            Ok(created)
        });
        if created.is_err() {
            // This process made the file a moment ago, and no sample is in it.
            place::remove(&path);
        }
        created
    }

    /// Opens the file of a run that is to be finished, and what it holds.
    ///
    /// # Errors
    /// As [`read`]; of kind refused when another process is writing it, and when an older iolab wrote it.
    pub fn open_resume(path: &Path) -> Result<(Self, RunRecord)> {
        let (mut opened, version) = Self::open_to_write(path)?;
        if version < UPGRADED_FROM {
            return Err(older(path));
        }
        if version == SCHEMA_VERSION {
            guard::check_ours(&opened.connection, path)?;
        }
        let record = read::record(&opened.connection, path, version)?;
        if version < SCHEMA_VERSION {
            upgrade::upgrade(&mut opened.connection, path, &record)?;
        }
        opened.enter_wal()?;
        Ok((opened, record))
    }

    /// Opens the file, and gives the version of its schema.
    fn open_to_write(path: &Path) -> Result<(Self, i64)> {
        check_regular(path)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| file_fault(path, "write", &error))?;
        let opened = Self::locked(path, file)?;
        let version = check_identity(&opened.connection, path)?;
        Ok((opened, version))
    }

    fn locked(path: &Path, file: File) -> Result<Self> {
        // A file system without such locks is rare; runs there are on their own.
        if flock(&file, FlockOperation::NonBlockingLockExclusive)
            == Err(rustix::io::Errno::WOULDBLOCK)
        {
            return Err(Error::refused(format!(
                "{} is being written by another iolab",
                path.display()
            ))
            .hint("wait until that run has ended, then try again"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| fault(path, &error))?;
        let opened = Self {
            connection,
            is_traceable: place::leads_to(path, &file) == Some(true),
            lock: file,
            path: path.to_owned(),
            marked_running: false,
        };
        guard::restrain(&opened.connection).map_err(|error| fault(path, &error))?;
        opened.execute("PRAGMA foreign_keys = ON;")?;
        Ok(opened)
    }

    /// Commits no longer wait for storage then: a killed process loses nothing, a power cut at
    /// most the last samples, and the device under test is left alone between trials.
    fn enter_wal(&self) -> Result<()> {
        self.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks whether the file still bears its name. Where somebody has moved, removed or replaced it, everything is saved to
    /// a new file, in which the run goes on; its name is given.
    ///
    /// # Errors
    /// When it cannot be saved anywhere.
    pub fn follow(&mut self) -> Result<Option<PathBuf>> {
        if !self.is_traceable || place::leads_to(&self.path, &self.lock) != Some(false) {
            return Ok(None);
        }
        let (path, file) = place::save(&mut self.connection, &self.path)?;
        let mut saved = Self::locked(&path, file)?;
        saved.marked_running = self.marked_running;
        saved.enter_wal()?;
        *self = saved;
        Ok(Some(path))
    }

    /// Adds a sample with its latencies and its series in one transaction, and gives the sample's number in the
    /// file ([`Sample::id`] is not looked at). Histograms are those of the whole sample; empty ones are not kept.
    ///
    /// # Errors
    /// When it cannot be written, or an ok sample of this cell and block is there already.
    pub fn add_sample(
        &mut self,
        sample: &Sample,
        latencies: &[(LatencyOf, &LatencyHistogram)],
        series: &Series,
    ) -> Result<i64> {
        let of_whole = |(of, histogram): &(LatencyOf, _)| (PartId::default(), *of, *histogram);
        let latencies: Vec<_> = latencies.iter().map(of_whole).collect();
        self.add_sample_in_parts(sample, &[], &latencies, series)
    }

    /// As [`RunFile::add_sample`], of a sample that has several parts ([`Part::sample`] is not looked at), each with
    /// histograms of its own.
    ///
    /// # Errors
    /// As [`RunFile::add_sample`].
    pub fn add_sample_in_parts(
        &mut self,
        sample: &Sample,
        parts: &[Part],
        latencies: &[(PartId, LatencyOf, &LatencyHistogram)],
        series: &Series,
    ) -> Result<i64> {
        let path = self.path.clone();
        let mark = !self.marked_running;
        let id = self
            .transaction(|connection| {
                let id = rows::insert(connection, &path, &SAMPLE, sample, false)?;
                if id > read::ROWS_MAX as i64 {
                    let what = format!("it has {} samples", read::ROWS_MAX);
                    return Err(too_large(&path, what));
                }
                for part in parts {
                    let part = Part {
                        sample: id,
                        ..*part
                    };
                    rows::insert(connection, &path, &PART, &part, true)?;
                }
                for (part, of, histogram) in latencies {
                    if !histogram.is_empty() {
                        let row = LatencyRow {
                            sample: id,
                            part: *part,
                            operation: of.operation,
                            quantity: of.quantity,
                            histogram: latency::encode(histogram)?,
                        };
                        rows::insert(connection, &path, &LATENCY, &row, true)?;
                    }
                }
                for interval in &series.intervals {
                    let row = IntervalRow {
                        sample: id,
                        interval: *interval,
                    };
                    rows::insert(connection, &path, &SERIES, &row, true)?;
                }
                if mark {
                    let status = RunStatus::Running.name();
                    connection
                        .execute("UPDATE run SET status = ?, ended_utc = NULL", [status])
                        .map_err(|error| fault(&path, &error))?;
                }
                Ok(id)
            })
            .map_err(while_writing)?;
        self.marked_running = true;
        Ok(id)
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_event(&mut self, event: &Event) -> Result<()> {
        rows::insert(&self.connection, &self.path, &EVENT, event, false)
            .map(drop)
            .map_err(while_writing)
    }

    /// Notes the completion strategy that a cell got.
    ///
    /// # Errors
    /// When it cannot be written, or there is no such cell.
    pub fn set_batch(&mut self, cell: i64, batch: Batch) -> Result<()> {
        let sql = "UPDATE cell SET batch = ? WHERE id = ?";
        self.update_cell(sql, cell, &batch.to_string())
    }

    /// Notes what ended the repetition of a cell.
    ///
    /// # Errors
    /// When it cannot be written, or there is no such cell.
    pub fn set_ended_by(&mut self, cell: i64, ended_by: EndedBy) -> Result<()> {
        let sql = "UPDATE cell SET ended_by = ? WHERE id = ?";
        self.update_cell(sql, cell, ended_by.name())
    }

    /// Adds cells to the plan of a run under way, together with the definition that now holds them.
    ///
    /// # Errors
    /// When it cannot be written; the plan is as it was then.
    pub fn add_cells(&mut self, experiment: &ExperimentRecord, cells: &[Cell]) -> Result<()> {
        let path = self.path.clone();
        self.transaction(|connection| {
            connection
                .execute("UPDATE experiment SET toml = ?", [&experiment.toml])
                .map_err(|error| fault(&path, &error))?;
            write_cells(connection, &path, experiment, cells)
        })
    }

    /// Marks every sample before a block as a warm-up, so that no summary takes it in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn leave_out_before(&mut self, block: u32) -> Result<()> {
        self.connection
            .execute("UPDATE sample SET warmup = 1 WHERE block < ?", [block])
            .map(drop)
            .map_err(|error| fault(&self.path, &error))
    }

    /// Notes how the run stands at `ended_utc` and makes it one plain, durable file.
    ///
    /// # Errors
    /// When it cannot be written. What was added before is kept all the same.
    pub fn finish(self, status: RunStatus, ended_utc: &str) -> Result<()> {
        let sql = "UPDATE run SET status = ?, ended_utc = ?";
        self.connection
            .execute(sql, params![status.name(), ended_utc])
            .map_err(|error| while_writing(fault(&self.path, &error)))?;
        // Dropping it does the rest.
        Ok(())
    }

    fn update_cell(&self, sql: &str, cell: i64, value: &str) -> Result<()> {
        let changed = self
            .connection
            .execute(sql, params![value, cell])
            .map_err(|error| fault(&self.path, &error))?;
        match changed {
            1 => Ok(()),
            _ => Err(damaged(&self.path, format!("there is no cell {cell}"))),
        }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection
            .execute_batch(sql)
            .map_err(|error| fault(&self.path, &error))
    }

    fn transaction<T>(&mut self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let wrong = |error| fault(&self.path, &error);
        let transaction = self.connection.transaction().map_err(wrong)?;
        let value = work(&transaction)?;
        transaction.commit().map_err(wrong)?;
        Ok(value)
    }
}

impl Drop for RunFile {
    /// Brings everything into the one file. A reader that looks on can prevent that: the file
    /// stays in WAL mode then, complete together with its `-wal`.
    fn drop(&mut self) {
        let _ = self.execute("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE);");
        let _ = self.execute("PRAGMA journal_mode = DELETE;");
    }
}

/// Brings what a process that was killed has left beside a run file into the one file; does nothing where nothing is left.
///
/// # Errors
/// As [`read`]; also when it cannot be written, or is being written.
pub fn settle(path: &Path) -> Result<()> {
    if ["-wal", "-shm"]
        .iter()
        .any(|suffix| beside(path, suffix).exists())
    {
        // Dropping it does the rest.
        drop(RunFile::open_to_write(path)?);
    }
    Ok(())
}

/// Reads a run file, latencies left out. The file is not changed; it may be in the middle of
/// being written, or left by a process that was killed.
///
/// # Errors
/// Of kind usage: no such file, no run file, written by a newer iolab, damaged or cut short.
pub fn read(path: &Path) -> Result<RunRecord> {
    let (connection, version) = open_to_read(path)?;
    read::record(&connection, path, version)
}

/// The latency histograms of a run file, in the order of the samples; each is read when asked for.
#[derive(Debug)]
pub struct Latencies {
    connection: Connection,
    path: PathBuf,
    version: i64,
    left: std::vec::IntoIter<read::LatencyKey>,
}

/// Opens the latency histograms of a run file.
///
/// # Errors
/// As [`read`].
pub fn read_latency(path: &Path) -> Result<Latencies> {
    let (connection, version) = open_to_read(path)?;
    let left = read::latency_keys(&connection, path, version)?.into_iter();
    Ok(Latencies {
        connection,
        path: path.to_owned(),
        version,
        left,
    })
}

impl Iterator for Latencies {
    type Item = Result<SampleLatency>;

    fn next(&mut self) -> Option<Self::Item> {
        let (sample, part, of) = self.left.next()?;
        let connection = &self.connection;
        let bytes = match self.version {
            ..5 => blob(
                connection,
                "SELECT histogram FROM latency WHERE sample_id = ? AND direction = ?",
                params![sample, before_5::direction(of)],
            ),
            _ => blob(
                connection,
                "SELECT histogram FROM latency WHERE sample_id = ? AND group_id = ? AND rank_id = ?
                     AND target_id = ? AND operation = ? AND quantity = ?",
                params![
                    sample,
                    part.group,
                    part.rank,
                    part.target,
                    of.operation.name(),
                    of.quantity.name()
                ],
            ),
        };
        let histogram = bytes
            .map_err(|error| fault(&self.path, &error))
            .and_then(|bytes| {
                latency::decode(&bytes).map_err(|what| {
                    damaged(
                        &self.path,
                        format!("the histogram of sample {sample}: {what}"),
                    )
                })
            });
        Some(histogram.map(|histogram| SampleLatency {
            sample,
            part,
            of,
            histogram,
        }))
    }
}

fn blob(connection: &Connection, sql: &str, key: impl Params) -> rusqlite::Result<Vec<u8>> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(key, |row| row.get(0))
}

/// The trials of a run file over time, in the order of the samples; each is read when asked for.
#[derive(Debug)]
pub struct AllSeries {
    connection: Connection,
    path: PathBuf,
    version: i64,
    left: std::vec::IntoIter<i64>,
}

/// Opens the series of a run file. There are none in files before schema version 4.
///
/// # Errors
/// As [`read`].
pub fn read_series(path: &Path) -> Result<AllSeries> {
    let (connection, version) = open_to_read(path)?;
    let left = series::keys(&connection, path, version)?.into_iter();
    Ok(AllSeries {
        connection,
        path: path.to_owned(),
        version,
        left,
    })
}

impl Iterator for AllSeries {
    type Item = Result<SampleSeries>;

    fn next(&mut self) -> Option<Self::Item> {
        let sample = self.left.next()?;
        let series = series::of_sample(&self.connection, &self.path, self.version, sample);
        Some(series.map(|series| SampleSeries { sample, series }))
    }
}

/// The bytes of a file with its plan, and no sample yet.
fn laid_out(
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<Vec<u8>> {
    // Of what goes wrong here, nothing has to do with any file.
    let nowhere = Path::new("the new run file");
    let wrong = |error| fault(nowhere, &error);
    let mut memory = Connection::open_in_memory().map_err(wrong)?;
    let identity = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {SCHEMA_VERSION}; BEGIN;",
        schema::APPLICATION_ID
    );
    for sql in [identity.as_str(), &schema::CREATE] {
        memory.execute_batch(sql).map_err(wrong)?;
    }
    rows::insert(&memory, nowhere, &RUN, run, true)?;
    write_environment(&memory, nowhere, environment)?;
    rows::insert(&memory, nowhere, &EXPERIMENT, experiment, true)?;
    write_cells(&memory, nowhere, experiment, cells)?;
    memory.execute_batch("COMMIT").map_err(wrong)?;
    let content = memory.serialize("main").map_err(wrong)?;
    Ok(content.to_vec())
}

fn write_environment(
    connection: &Connection,
    path: &Path,
    environment: &Environment,
) -> Result<()> {
    for (position, (key, value)) in environment.iter().enumerate() {
        let fact = Fact {
            host: 0,
            position: position as u64,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        rows::insert(connection, path, &ENVIRONMENT, &fact, true)?;
    }
    Ok(())
}

fn write_cells(
    connection: &Connection,
    path: &Path,
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
        rows::insert(connection, path, &CELL, &row, true)?;
    }
    Ok(())
}

/// Everything of a run but its samples and events.
fn write_plan(connection: &Connection, path: &Path, record: &RunRecord) -> Result<()> {
    rows::insert(connection, path, &RUN, &record.run, true)?;
    write_environment(connection, path, &record.environment)?;
    rows::insert(connection, path, &EXPERIMENT, &record.experiment, true)?;
    write_cells(connection, path, &record.experiment, &record.cells)
}

/// Opens the file, and gives the version of its schema.
fn open_to_read(path: &Path) -> Result<(Connection, i64)> {
    check_regular(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(look);
    let connection = match opened {
        // In WAL mode SQLite needs files beside this one. Where they cannot be made, and no
        // transaction waits in one, this file alone is all there is.
        Err(error) if is_unopenable(&error) && !has_wal(path) => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags).and_then(look)
        }
        other => other,
    }
    .map_err(|error| fault(path, &error))?;
    let version = check_identity(&connection, path)?;
    Ok((connection, version))
}

/// SQLite opens lazily: only a first look at the file shows whether it can be read.
fn look(connection: Connection) -> rusqlite::Result<Connection> {
    guard::restrain(&connection)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn check_regular(path: &Path) -> Result<()> {
    place::check_length(path)?;
    let metadata = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::usage(format!("{} is no file", path.display())).hint("give a run file, NAME.iolab"))
}

/// Whether the file is a whole run file of a schema that is known here.
///
/// Gives the version of its schema.
fn check_identity(connection: &Connection, path: &Path) -> Result<i64> {
    let pragma = |name: &str| -> Result<i64> {
        connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .map_err(|error| fault(path, &error))
    };
    if pragma("application_id")? != schema::APPLICATION_ID {
        return Err(not_a_run_file(path));
    }
    let version = pragma("user_version")?;
    if version > SCHEMA_VERSION {
        return Err(newer(path, version, SCHEMA_VERSION));
    }
    if version < 1 {
        return Err(damaged(
            path,
            format!("schema version {version} does not exist"),
        ));
    }
    // SQLite takes the missing part of a last page for zeros.
    let stated = pragma("page_count")?.saturating_mul(pragma("page_size")?);
    let found = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    if !has_wal(path) && i64::try_from(found.len()).is_ok_and(|length| length < stated) {
        let what = format!("it has {} bytes and should have {stated}", found.len());
        return Err(damaged(path, what));
    }
    guard::check_plain(connection, path)?;
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| fault(path, &error))?;
    if verdict != "ok" {
        return Err(damaged(path, verdict));
    }
    Ok(version)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn has_wal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}

/// A `file:` URI (RFC 3986: all but unreserved bytes are escaped) that promises no change.
fn immutable_uri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file://".to_owned();
    for byte in absolute.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri.push_str("?immutable=1");
    uri
}
