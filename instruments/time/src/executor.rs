//! Carries runs of commands out, with what surrounds them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use iolab_host::clock::Clock;
use iolab_host::program::Program;
use iolab_runner::Executor;
use iolab_runner::evidence::Origin;
use iolab_workload::outcome::{Ended, Failure, Outcome, ProgramEnd};
use iolab_workload::region_state::Medium;
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result};

use crate::commands::TimedCommand;
use crate::commands::{StartUp, checked, found, run};

/// A command with its programs found.
struct Prepared {
    text: String,
    level: String,
    timed: Program,
    prepare: Option<Program>,
    setup: Option<Program>,
    cleanup: Option<Program>,
    /// Runs so far, without those before the first block.
    runs: Vec<OwnRun>,
    has_begun: bool,
}

/// Facts of a run that the run file does not keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnRun {
    /// Most memory resident, bytes.
    pub(crate) resident_bytes: u64,
    /// Whether that may be iolab's own, so that the command had less.
    pub(crate) is_of_iolab: bool,
    /// Exit code; `None` if a signal ended the command.
    pub(crate) exit_code: Option<i32>,
}

/// Runs commands, one after the other.
pub(crate) struct Runner<'a> {
    commands: Vec<Prepared>,
    clock: &'a Clock,
    start_up: Option<StartUp>,
    /// Runs of each command before its first block.
    warmups: u32,
    ignores_failure: bool,
    began: Instant,
}

impl<'a> Runner<'a> {
    /// Finds the programs of the commands.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is no such program.
    pub(crate) fn of(
        commands: &[TimedCommand],
        clock: &'a Clock,
        start_up: Option<StartUp>,
        (warmups, ignores_failure): (u32, bool),
    ) -> Result<Self> {
        let prepared = |command: &TimedCommand| {
            let find = |level: &Option<String>| level.as_deref().map(found).transpose();
            Ok(Prepared {
                text: command.text.clone(),
                level: command.level.clone(),
                timed: found(&command.level)?,
                prepare: find(&command.prepare)?,
                setup: find(&command.setup)?,
                cleanup: find(&command.cleanup)?,
                runs: Vec::new(),
                has_begun: false,
            })
        };
        Ok(Self {
            commands: commands.iter().map(prepared).collect::<Result<_>>()?,
            clock,
            start_up,
            warmups,
            ignores_failure,
            began: Instant::now(),
        })
    }

    /// Facts of the last `count` runs of a command that the run file does not keep.
    pub(crate) fn last_runs(&self, command: usize, count: usize) -> &[OwnRun] {
        let runs = self.commands.get(command).map_or(&[][..], |own| &own.runs);
        &runs[runs.len().saturating_sub(count)..]
    }

    /// Runs the command after the last run of each command that has begun.
    ///
    /// # Errors
    /// The first that fails; the others are run all the same.
    pub(crate) fn clean_up(&self) -> Result<()> {
        // An interrupt has ended the runs, and does not end what cleans up after them.
        let stop = AtomicBool::new(false);
        let begun = self.commands.iter().filter(|own| own.has_begun);
        let cleanups = begun.filter_map(|own| own.cleanup.as_ref());
        let cleaned = cleanups.map(|cleanup| self.beside(Some(cleanup), "--cleanup", &stop));
        cleaned.fold(Ok(()), Result::and)
    }

    /// Runs what is not timed.
    fn beside(&self, program: Option<&Program>, option: &str, stop: &AtomicBool) -> Result<()> {
        let Some(program) = program else {
            return Ok(());
        };
        let ran = run(program, self.clock, stop)?;
        checked(&ran.outcome, "").map_err(|error| error.within(option))
    }

    /// A run that counts, with the command before it.
    fn time(&self, number: usize, stop: &AtomicBool) -> Result<(Outcome, OwnRun)> {
        let own = &self.commands[number];
        self.beside(own.prepare.as_ref(), "--prepare", stop)?;
        let ran = run(&own.timed, self.clock, stop)?;
        let mut outcome = ran.outcome;
        let end = match &mut outcome.failure {
            Some(Failure::Program(program)) => {
                program.command.clone_from(&own.text);
                Some(program.end)
            }
            _ => None,
        };
        let exit_code = match end {
            Some(ProgramEnd::Code(code)) => Some(code),
            Some(_) => None,
            None => Some(0),
        };
        if self.ignores_failure && outcome.failure.take().is_some() {
            outcome
                .effective
                .add_note("the command failed, which was ignored (-i)");
            (outcome.errors, outcome.ended) = (0, Ended::Done);
        }
        checked(&outcome, "; -i counts runs that fail")?;
        if let Some(start_up) = &self.start_up {
            start_up.subtract_from(&mut outcome);
        }
        let own = OwnRun {
            resident_bytes: ran.resident_bytes,
            is_of_iolab: ran.resident_bytes <= resident_at_most(),
            exit_code,
        };
        Ok((outcome, own))
    }
}

/// The most memory that iolab had resident, bytes, with a twentieth for the rounding of the kernel's counts.
fn resident_at_most() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024 / 20 * 21)
}

impl Executor for Runner<'_> {
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let level = cell.command.as_ref().map(ToString::to_string);
        let is_it = |own: &Prepared| level.as_deref() == Some(own.level.trim());
        let number = self.commands.iter().position(is_it);
        let number = number.ok_or_else(|| Error::failed("a command was not prepared"))?;
        if !self.commands[number].has_begun {
            self.commands[number].has_begun = true;
            self.beside(self.commands[number].setup.as_ref(), "--setup", stop)?;
            for _ in 0..self.warmups {
                self.time(number, stop)?;
            }
        }
        let (outcome, own) = self.time(number, stop)?;
        self.commands[number].runs.push(own);
        Ok(outcome)
    }

    fn pause(&mut self, _time: Duration, _stop: &AtomicBool) {}

    fn origin(&self, _cell: &CellSpec) -> Origin {
        Origin::Medium(Medium::Storage)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}
