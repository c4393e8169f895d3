//! The run file: one SQLite file per run, written sample by sample. docs/RUNFILE.md has the schema.
//!
//! While a run is measured the file is in WAL mode and readers may look on. When the run ends,
//! whatever the reason, everything is brought into the one plain file. A process that is killed
//! leaves `FILE-wal` beside it; both together are complete, and reading them is enough.
//!
//! Files to begin with: `lib.rs`, `create.rs` a new file is there whole or not at all, `guard.rs` a file from elsewhere
//! runs nothing, `read.rs`, `upgrade.rs`, `numbers.rs` text files with one number per line.

mod create;
mod error;
mod guard;
mod location;
pub mod numbers;
mod opening;
mod question;
mod read;
mod rows;
mod schema;
mod series;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod upgrade;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use iolab_workload::histogram::{self, LatencyHistogram};
use iolab_workload::trial::Batch;
use iolab_workload::{Error, Result};
use rusqlite::{Connection, OpenFlags, params};
use rustix::fs::{FlockOperation, flock};

pub use create::NewFile;
use error::{damaged, fault, file_fault, too_large, while_writing};
use iolab_record::environment::Environment;
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, CellRow, ENVIRONMENT, EVENT, EXPERIMENT, Fact, GROUP_SAMPLE,
    GroupRow, IntervalRow, LATENCY, LatencyRow, PART, RANK, RUN, Rank, SAMPLE, SERIES, TARGET,
};
use iolab_record::{
    Cell, EndedBy, Event, ExperimentRecord, FurtherTarget, LatencyOf, Part, PartId, Pilot, Run,
    RunRecord, RunStatus, SCHEMA_VERSION, Sample, Series,
};
pub use location::check_place;
use opening::{SIDE_FILES, beside, check_identity, check_regular, check_side_files, open_to_read};
pub use question::asked_by;
pub use streams::{AllSeries, Latencies, read_latency, read_series};

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
        opening::check_length(&place.name(1))?;
        let content = laid_out(run, environment, experiment, cells)?;
        let (path, file) = create::create(place, &content)?;
        let created = Self::locked(&path, file).and_then(|mut created| {
            created.marked_running = run.status == RunStatus::Running;
            created.enter_wal()?;
            Ok(created)
        });
        if created.is_err() {
            // This process made the file a moment ago, and no sample is in it.
            location::remove(&path);
        }
        created
    }

    /// Opens the file of a run that is to be finished, and what it holds. A file of an earlier schema version or build becomes
    /// one of this version.
    ///
    /// # Errors
    /// As [`read`]; of kind refused when another process is writing it.
    pub fn open_resume(path: &Path) -> Result<(Self, RunRecord)> {
        let (mut opened, version) = Self::open_to_write(path)?;
        let is_complete =
            guard::is_complete(&opened.connection).map_err(|error| fault(path, &error))?;
        let is_current = version == SCHEMA_VERSION && is_complete;
        if is_current {
            guard::check_ours(&opened.connection, path)?;
        }
        let record = read::record(&opened.connection, path, version)?;
        if !is_current {
            upgrade::upgrade(&mut opened.connection, path, &record)?;
        }
        opened.enter_wal()?;
        Ok((opened, record))
    }

    /// Opens the file, and gives the version of its schema.
    fn open_to_write(path: &Path) -> Result<(Self, i64)> {
        check_regular(path)?;
        check_side_files(path)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| file_fault(path, "write", &error))?;
        let mut opened = Self::locked(path, file)?;
        guard::distrust(&mut opened.connection).map_err(|error| fault(path, &error))?;
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
            is_traceable: location::leads_to(path, &file) == Some(true),
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

    /// Looks whether the file still bears its name. Where another process has moved, removed or replaced it, everything is saved to
    /// a new file, in which the run goes on; its name is given.
    ///
    /// # Errors
    /// When it cannot be saved anywhere.
    pub fn follow(&mut self) -> Result<Option<PathBuf>> {
        if !self.is_traceable || location::leads_to(&self.path, &self.lock) != Some(false) {
            return Ok(None);
        }
        let (path, file) = location::save(&mut self.connection, &self.path)?;
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
        self.add_whole(sample, (&[], &[], &[]), &latencies, series)
    }

    /// As [`RunFile::add_sample`], of a trial that has groups: the sample of each (its number in the file is not looked at),
    /// and histograms by group.
    ///
    /// # Errors
    /// As [`RunFile::add_sample`].
    pub fn add_sample_of_groups(
        &mut self,
        sample: &Sample,
        groups: &[Sample],
        latencies: &[(PartId, LatencyOf, &LatencyHistogram)],
        series: &Series,
    ) -> Result<i64> {
        self.add_whole(sample, (groups, &[], &[]), latencies, series)
    }

    /// As [`RunFile::add_sample`], of a sample that has several parts ([`Part::sample`] is not looked at), each with
    /// histograms of its own, and of several clients.
    ///
    /// # Errors
    /// As [`RunFile::add_sample`].
    pub fn add_sample_in_parts(
        &mut self,
        sample: &Sample,
        (parts, clients): (&[Part], &[Sample]),
        latencies: &[(PartId, LatencyOf, &LatencyHistogram)],
        series: &Series,
    ) -> Result<i64> {
        self.add_whole(sample, (&[], parts, clients), latencies, series)
    }

    fn add_whole(
        &mut self,
        sample: &Sample,
        (groups, parts, clients): (&[Sample], &[Part], &[Sample]),
        latencies: &[(PartId, LatencyOf, &LatencyHistogram)],
        series: &Series,
    ) -> Result<i64> {
        let path = self.path.clone();
        let mark = !self.marked_running;
        let id = self
            .transaction(|connection| {
                let id = rows::insert(connection, &path, &SAMPLE, sample, false)?;
                if id > schema::ROWS_MAX as i64 {
                    let what = format!("it has {} samples", schema::ROWS_MAX);
                    return Err(too_large(&path, what));
                }
                for (table, own) in [(&GROUP_SAMPLE, groups), (&CLIENT_SAMPLE, clients)] {
                    for own in own {
                        let own = Sample { id, ..own.clone() };
                        rows::insert(connection, &path, table, &own, true)?;
                    }
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
                            histogram: histogram::encode(histogram).map_err(not_encoded)?,
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
                        .and_then(|_| connection.execute("UPDATE question SET answer = NULL", []))
                        .map_err(|error| fault(&path, &error))?;
                }
                Ok(id)
            })
            .map_err(while_writing)?;
        self.marked_running = true;
        Ok(id)
    }

    /// Adds the further targets of a run.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_targets(&mut self, targets: &[FurtherTarget]) -> Result<()> {
        let path = self.path.clone();
        self.transaction(|connection| {
            for target in targets {
                rows::insert(connection, &path, &TARGET, target, false)?;
            }
            Ok(())
        })
        .map_err(while_writing)
    }

    /// Adds the processes of a run that has several.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_ranks(&mut self, ranks: &[Rank]) -> Result<()> {
        let path = self.path.clone();
        self.transaction(|connection| {
            for rank in ranks {
                rows::insert(connection, &path, &RANK, rank, true)?;
            }
            Ok(())
        })
        .map_err(while_writing)
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
        let batch = batch.to_string();
        self.changed(cell, self.connection.execute(sql, params![batch, cell]))
    }

    /// Notes what the pilot has chosen for a cell.
    ///
    /// # Errors
    /// When it cannot be written, or there is no such cell.
    pub fn set_pilot(&mut self, cell: i64, pilot: Pilot) -> Result<()> {
        let sql = "UPDATE cell SET block_visits = ?, short_time_ns = ? WHERE id = ?";
        let time = pilot.time_ns.map(|ns| ns as i64);
        self.changed(
            cell,
            self.connection
                .execute(sql, params![pilot.visits, time, cell]),
        )
    }

    /// Notes what ended the repetition of a cell; `None` where it goes on.
    ///
    /// # Errors
    /// When it cannot be written, or there is no such cell.
    pub fn set_ended_by(&mut self, cell: i64, ended_by: Option<EndedBy>) -> Result<()> {
        let sql = "UPDATE cell SET ended_by = ? WHERE id = ?";
        let name = ended_by.map(EndedBy::name);
        self.changed(cell, self.connection.execute(sql, params![name, cell]))
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

    /// Whether the run is to answer a question.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn asks(&self) -> Result<bool> {
        let sql = "SELECT count(*) FROM question";
        let count = self
            .connection
            .query_row(sql, [], |row| row.get::<_, i64>(0));
        count
            .map(|count| count > 0)
            .map_err(|error| fault(&self.path, &error))
    }

    /// Notes how the run stands at `ended_utc`, and what it answers to its question (a word of
    /// [`iolab_record::tables::ANSWERS`]), and makes it one plain, durable file.
    ///
    /// # Errors
    /// When it cannot be written. What was added before is kept all the same.
    pub fn finish(
        mut self,
        status: RunStatus,
        ended_utc: &str,
        answer: Option<&str>,
    ) -> Result<()> {
        let path = self.path.clone();
        let written = self.transaction(|connection| {
            let sql = "UPDATE run SET status = ?, ended_utc = ?";
            connection
                .execute(sql, params![status.name(), ended_utc])
                .and_then(|_| connection.execute("UPDATE question SET answer = ?", [answer]))
                .map_err(|error| fault(&path, &error))
        });
        written.map_err(while_writing)?;
        // Dropping it does the rest.
        Ok(())
    }

    /// Looks whether exactly one row was changed.
    fn changed(&self, cell: i64, changed: rusqlite::Result<usize>) -> Result<()> {
        match changed.map_err(|error| fault(&self.path, &error))? {
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

fn not_encoded(why: String) -> Error {
    Error::failed(format!("a latency histogram cannot be encoded: {why}"))
}

/// Brings what a process that was killed has left beside a run file into the one file; does nothing where nothing is left.
///
/// # Errors
/// As [`read`]; also when it cannot be written, or is being written.
pub fn settle(path: &Path) -> Result<()> {
    if SIDE_FILES
        .iter()
        .any(|ending| beside(path, ending).exists())
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
    write_plan(&memory, nowhere, run, environment, experiment, cells)?;
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
        for (id, group) in (1..).zip(&cell.spec.groups) {
            let row = GroupRow {
                cell: cell.id,
                id,
                name: group.name.clone(),
                target: 0,
                spec: group.spec.clone(),
            };
            rows::insert(connection, path, &CELL_GROUP, &row, true)?;
        }
    }
    Ok(())
}

/// What a run file holds from its beginning.
fn write_plan(
    connection: &Connection,
    path: &Path,
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<()> {
    rows::insert(connection, path, &RUN, run, true)?;
    write_environment(connection, path, environment)?;
    rows::insert(connection, path, &EXPERIMENT, experiment, true)?;
    if let Some(asked) = &experiment.asked {
        question::write(connection, path, asked)?;
    }
    write_cells(connection, path, experiment, cells)
}
