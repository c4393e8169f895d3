//! iolab-runfile: the run file, one SQLite file per run, written sample by sample. docs/RUNFILE.md has the schema.
//!
//! During the run the file is in WAL mode, and only this crate can read it (`logged.rs`). When the run ends for any reason, everything is
//! moved to the one plain file. A killed process leaves `FILE-wal` next to it; both together are complete and readable.
//!
//! Files to begin with: `lib.rs` the open run file, `create.rs` atomic creation, `opening.rs`
//! protection against foreign files, `read.rs`, `number_list.rs` text files with one number per line.

mod create;
mod error;
mod layout;
mod location;
mod logged;
pub mod number_list;
mod observation;
mod opening;
mod over_time;
mod read;
mod rows;
mod system;
#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, OpenOptions, TryLockError};
use std::iter;
use std::path::{Path, PathBuf};

use iolab_record::environment::Environment;
use iolab_record::tables::{
    CLIENT_SAMPLE, DRIVE_LOG, EVENT, GROUP_SAMPLE, LATENCY, LatencyRow, PART, PREPARATION, RANK,
    Rank, SAMPLE, STAGES, TARGET,
};
use iolab_record::{
    Cell, DriveLog, EndedBy, Event, ExperimentRecord, FurtherTarget, LatencyOf, Part, PartId,
    PreparationStep, Run, RunRecord, RunStatus, Sample,
};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::trial::Batch;
use iolab_workload::{Error, Result, histogram};
use rusqlite::{Connection, OpenFlags, Params, params};

pub use create::{FileName, Folder, NewFile, unmade_folder};
pub use error::invalid;
use error::{damaged, fault, file_fault, not_merged, too_large, while_writing};
use layout::{laid_out, write_cells};
pub use location::check_place;
pub use observation::create_observation;
use opening::{check_identity, check_regular};
pub use over_time::{
    AllSeries, Latencies, LatenciesOverTime, TrialCourse, read_latency, read_latency_over_time,
    read_series,
};
pub use read::{Content, read, read_content};
use rows::Tables;
use system::{SIDE_FILES, beside, check_side_files, has_wal};

/// A run file open for writing. Dropping it keeps everything written so far.
#[derive(Debug)]
pub struct RunFile {
    // Declared before the lock, to be dropped first: closing any descriptor of a file releases SQLite's locks on it.
    connection: Connection,
    /// Held while this process writes, to exclude others.
    lock: File,
    path: PathBuf,
    marked_running: bool,
    /// Whether the log was moved into the file at the end, or that was tried.
    is_finished: bool,
    /// Whether its path led to the same file when it was opened, which some file systems do not guarantee.
    is_traceable: bool,
}

/// Parts of a sample, to be stored with it; empty for one without.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleParts<'a> {
    /// The sample of each group.
    pub groups: &'a [Sample],
    /// Results of each group on a rank, by target.
    pub parts: &'a [Part],
    /// The sample of each client.
    pub clients: &'a [Sample],
}

impl RunFile {
    /// Creates a run file with its plan and without samples, atomically, and its folder if it is missing.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) if the file exists; no file is ever overwritten. Also if it
    /// cannot be written; no file is left then.
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
        create::in_folder(place, |folder| {
            let (path, file) = create::attempt(folder, place, &content)
                .map_err(|error| create::fault(place, &place.name(1), &error))?;
            let opened = Self::locked(&path, file).and_then(|mut opened| {
                opened.marked_running = run.status == RunStatus::Running;
                opened.enter_wal()?;
                Ok(opened)
            });
            if opened.is_err() {
                // This process has just created the file, without samples.
                folder.remove(&path);
            }
            opened
        })
    }

    /// Opens the file of a run to be finished, with its content.
    ///
    /// # Errors
    ///
    /// Errors of [`read`]; of kind [`Refused`](iolab_workload::Kind::Refused) when another process is writing it.
    pub fn open_resume(path: &Path) -> Result<(Self, RunRecord)> {
        let opened = Self::open_to_write(path)?;
        opening::check_ours(&opened.connection, path)?;
        let record = read::content(&opened.connection, path)?.run(path)?;
        opened.enter_wal()?;
        Ok((opened, record))
    }

    fn open_to_write(path: &Path) -> Result<Self> {
        check_regular(path)?;
        check_side_files(path)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| file_fault(path, "write", &error))?;
        let mut opened = Self::locked(path, file)?;
        opening::distrust(&mut opened.connection, path)?;
        check_identity(&opened.connection, path)?;
        Ok(opened)
    }

    fn locked(path: &Path, file: File) -> Result<Self> {
        // Few file systems lack such locks; there, nothing excludes other writers.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::refused(format!(
                "{} is being written by another iolab",
                path.display()
            ))
            .hint("wait until that run has ended, then try again"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // SQLite opens by name: a link that takes the place of a folder meanwhile is not followed.
        let connection = match system::path_without_links(&file) {
            Some(own) => Connection::open_with_flags(own, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW),
            None => Connection::open_with_flags(path, flags),
        };
        let connection = connection.map_err(|error| fault(path, &error))?;
        let opened = Self {
            connection,
            is_traceable: location::leads_to(path, &file) == Some(true),
            lock: file,
            path: path.to_owned(),
            marked_running: false,
            is_finished: false,
        };
        opening::restrain(&opened.connection).map_err(|error| fault(path, &error))?;
        // Exclusive, so that the index of the log is in memory: a map of a file (`-shm`) kills the process when its disk is full.
        opened.execute("PRAGMA foreign_keys = ON; PRAGMA locking_mode = EXCLUSIVE;")?;
        Ok(opened)
    }

    /// Commits then do not wait for storage: a killed process loses nothing, a power failure at most the last samples, and there
    /// is no I/O of ours on the device under test between trials.
    fn enter_wal(&self) -> Result<()> {
        let mode = self
            .connection
            .query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        // A new file is in this mode from its creation, so that no reader waits for its lock.
        if mode.map_err(|error| fault(&self.path, &error))? != "wal" {
            self.leave_wal()?;
        }
        self.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    }

    /// Changes the first sector of the file, which is written at once. A journal on disk would only remain after a kill, and readers,
    /// which change nothing, could not play it back.
    fn leave_wal(&self) -> Result<()> {
        self.execute("PRAGMA journal_mode = MEMORY;")
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file still has its path. If another process has moved, removed or replaced it, saves everything to a new
    /// file for the rest of the run, and returns its path.
    ///
    /// # Errors
    ///
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

    /// Adds a sample with its latencies and its series in one transaction; returns its row number ([`Sample::id`] is
    /// ignored). Histograms cover the whole sample; empty ones are not stored.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or a successful sample of this cell and block exists.
    pub fn add_sample<'a>(
        &mut self,
        sample: &Sample,
        latencies: &[(LatencyOf, &LatencyHistogram)],
        course: impl Into<TrialCourse<'a>>,
    ) -> Result<i64> {
        let of_whole = |(of, histogram): &(LatencyOf, _)| (PartId::default(), *of, *histogram);
        let latencies: Vec<_> = latencies.iter().map(of_whole).collect();
        self.add_sample_of(sample, SampleParts::default(), &latencies, course.into())
    }

    /// Adds a sample with its parts: the samples of its groups and of its clients, and what each group did on a rank. Their ids
    /// are ignored. Histograms are of parts.
    ///
    /// # Errors
    ///
    /// Errors of [`RunFile::add_sample`].
    pub fn add_sample_of(
        &mut self,
        sample: &Sample,
        SampleParts {
            groups,
            parts,
            clients,
        }: SampleParts<'_>,
        latencies: &[(PartId, LatencyOf, &LatencyHistogram)],
        course: TrialCourse<'_>,
    ) -> Result<i64> {
        let mark = !self.marked_running;
        let id = self.transaction(|tables| {
            let id = tables.insert(&SAMPLE, sample)?;
            if id > rows::ROWS_MAX as i64 {
                let what = format!("it has {} samples", rows::ROWS_MAX);
                return Err(too_large(tables.path, what));
            }
            let traced = iter::once(sample).chain(groups);
            let traced = traced.filter(|own| own.traced.is_some());
            let own = groups.iter().map(|own| (&GROUP_SAMPLE, own));
            let own = own.chain(clients.iter().map(|own| (&CLIENT_SAMPLE, own)));
            for (table, own) in own.chain(traced.map(|own| (&STAGES, own))) {
                let own = Sample { id, ..own.clone() };
                tables.insert(table, &own)?;
            }
            for drive in &sample.drives {
                let drive = DriveLog {
                    sample: id,
                    ..drive.clone()
                };
                tables.insert(&DRIVE_LOG, &drive)?;
            }
            for part in parts {
                let part = Part {
                    sample: id,
                    ..*part
                };
                tables.insert(&PART, &part)?;
            }
            for (part, of, histogram) in latencies.iter().filter(|(_, _, own)| !own.is_empty()) {
                let histogram = histogram::encode(histogram).map_err(|why| {
                    Error::failed(format!("a latency histogram cannot be encoded: {why}"))
                })?;
                let row = LatencyRow {
                    sample: id,
                    part: *part,
                    of: *of,
                    histogram,
                };
                tables.insert(&LATENCY, &row)?;
            }
            course.insert(tables, id)?;
            if mark {
                let status = RunStatus::Running.name();
                tables.execute("UPDATE run SET status = ?, ended_utc = NULL", [status])?;
                tables.execute("UPDATE question SET answer = NULL", [])?;
            }
            Ok(id)
        })?;
        self.marked_running = true;
        Ok(id)
    }

    /// Adds the further targets of a run.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_targets(&mut self, targets: &[FurtherTarget]) -> Result<()> {
        self.transaction(|tables| tables.insert_all(&TARGET, targets))
    }

    /// Adds the processes of a run that has several.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_ranks(&mut self, ranks: &[Rank]) -> Result<()> {
        self.transaction(|tables| tables.insert_all(&RANK, ranks))
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_event(&mut self, event: &Event) -> Result<()> {
        self.transaction(|tables| tables.insert(&EVENT, event))
            .map(drop)
    }

    /// Adds a preparation step on a target before the first trial.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_preparation(&mut self, step: &PreparationStep) -> Result<()> {
        self.transaction(|tables| tables.insert(&PREPARATION, step))
            .map(drop)
    }

    /// Stores the completion strategy chosen for a cell.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or there is no such cell.
    pub fn set_batch(&mut self, cell: i64, batch: Batch) -> Result<()> {
        let sql = "UPDATE cell SET batch = ? WHERE id = ?";
        let batch = batch.to_string();
        self.change_cell(cell, sql, params![batch, cell])
    }

    /// Stores what ended the repetition of a cell; `None` if it continues.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or there is no such cell.
    pub fn set_ended_by(&mut self, cell: i64, ended_by: Option<EndedBy>) -> Result<()> {
        let sql = "UPDATE cell SET ended_by = ? WHERE id = ?";
        let name = ended_by.map(EndedBy::name);
        self.change_cell(cell, sql, params![name, cell])
    }

    /// Adds cells to the plan of a running run, with the definition that includes them.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the plan is then unchanged.
    pub fn add_cells(&mut self, experiment: &ExperimentRecord, cells: &[Cell]) -> Result<()> {
        self.transaction(|tables| {
            tables.execute("UPDATE experiment SET toml = ?", [&experiment.toml])?;
            write_cells(tables, experiment, cells)
        })
    }

    /// Marks every sample before a block as a warm-up, so that summaries exclude it.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn leave_out_before(&mut self, block: u32) -> Result<()> {
        let sql = "UPDATE sample SET warmup = 1 WHERE block < ?";
        self.tables().execute(sql, [block]).map(drop)
    }

    /// Whether the run has a question.
    ///
    /// # Errors
    ///
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

    /// Stores the status of the run at `ended_utc` and the answer to its question (a word of
    /// [`iolab_record::tables::ANSWERS`]), and makes the file plain and durable.
    ///
    /// # Errors
    ///
    /// When it cannot be written. Earlier additions are kept, in the file and its `-wal` together ([`log_beside`]).
    pub fn finish(
        mut self,
        status: RunStatus,
        ended_utc: &str,
        answer: Option<&str>,
    ) -> Result<()> {
        self.transaction(|tables| {
            let sql = "UPDATE run SET status = ?, ended_utc = ?";
            tables.execute(sql, params![status.name(), ended_utc])?;
            tables.execute("UPDATE question SET answer = ?", [answer])
        })?;
        self.merge()
    }

    /// Moves everything into the one file. If that fails, the file stays in WAL mode, complete together with its `-wal`.
    fn merge(&mut self) -> Result<()> {
        self.is_finished = true;
        let merged = self
            .connection
            .execute_batch("PRAGMA synchronous = FULL;")
            .and_then(|()| {
                let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
                self.connection.query_row(sql, [], |_| Ok(()))
            });
        merged.map_err(|error| not_merged(&self.path, &error))
    }

    fn tables(&self) -> Tables<'_> {
        Tables::new(&self.connection, &self.path)
    }

    /// Changes the row of a cell.
    fn change_cell(&self, cell: i64, sql: &str, parameters: impl Params) -> Result<()> {
        match self.tables().execute(sql, parameters)? {
            1 => Ok(()),
            _ => Err(damaged(&self.path, format!("there is no cell {cell}"))),
        }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection
            .execute_batch(sql)
            .map_err(|error| fault(&self.path, &error))
    }

    fn transaction<T>(&mut self, work: impl FnOnce(&Tables<'_>) -> Result<T>) -> Result<T> {
        let wrong = |error| while_writing(fault(&self.path, &error));
        let transaction = self.connection.transaction().map_err(wrong)?;
        let value = work(&Tables::new(&transaction, &self.path)).map_err(while_writing)?;
        transaction.commit().map_err(wrong)?;
        Ok(value)
    }
}

impl Drop for RunFile {
    /// Makes the file a plain one, if that works.
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.merge();
        }
        let _ = self.leave_wal();
    }
}

/// Merges the files that a killed process has left next to a run file into it; does nothing without such files.
///
/// # Errors
///
/// As [`read`]; also when it cannot be written, or is being written.
pub fn settle(path: &Path) -> Result<()> {
    if SIDE_FILES
        .iter()
        .any(|ending| beside(path, ending).exists())
    {
        let mut opened = RunFile::open_to_write(path)?;
        return opened.merge();
    }
    Ok(())
}

/// The log next to a run file, without which the file lacks trials; `None` if the file is complete.
pub fn log_beside(path: &Path) -> Option<PathBuf> {
    has_wal(path).then(|| beside(path, "-wal"))
}
