//! `iolab export`: samples, their intervals and latency buckets for other programs, and formats of other tools.

use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use iolab_analysis::analysed_run::{AnalysedRun, RunAnswer};
use iolab_analysis::runs::RunName;
use iolab_analysis::trial_values::{self, RunWithLatencies};
use iolab_record::{RunRecord, SampleLatencyOverTime};
use iolab_report::export::{self, ExportFormat, Exported, Judged, Writer};
use iolab_report::rows::Format;
use iolab_workload::{Error, Result};

use crate::arguments::Export;
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, Replaceable, harmless};
use iolab_command::output_format::format_of;
use iolab_command::run_files::analysed;

/// Writes the rows, or the format of another tool, to stdout or to a new file.
pub(crate) fn export(options: &Export, lists: &Lists) -> Outcome {
    let format = format(options, &lists.formats)?;
    check(options, format, &lists.formats)?;
    let records: Vec<RunRecord> = options
        .files
        .iter()
        .map(|path| iolab_runfile::read(path))
        .collect::<Result<_>>()?;
    if options.ranks {
        export::check_ranks(&records)?;
    }
    let replaced = options.output.as_deref();
    let replaced = replaced.filter(|path| options.force && !output::is_stdout(path));
    if let Some(path) = replaced {
        let mut text = Vec::new();
        write(records, options, format, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        return output::replace(path, harmless(&text).as_bytes(), Replaceable::Gauges);
    }
    let mut to = output::open(options.output.as_deref())?;
    write(records, options, format, &mut to)?;
    Ok(to.flush()?)
}

/// Writes the runs in a format.
fn write(
    records: Vec<RunRecord>,
    options: &Export,
    format: &ExportFormat,
    to: &mut dyn Write,
) -> Outcome {
    match format.writer {
        Writer::Rows(format) => rows(&records, options, format, to)?,
        Writer::RunsWithLatencies(write) => write(&with_latencies(records, options)?, to)?,
        Writer::Gauges(write) => {
            let runs = records.into_iter().zip(&options.files);
            let runs = runs.map(|(record, path)| analysed(record, path, None));
            write(&runs.collect::<Result<Vec<_>>>()?, to)?;
        }
        Writer::Judged(write) => judged(records, write, to)?,
    }
    Ok(())
}

/// Writes a file for another program. Without one, the notes say why.
fn judged(
    records: Vec<RunRecord>,
    write: fn(&[AnalysedRun]) -> Result<Judged>,
    to: &mut dyn Write,
) -> Outcome {
    let runs: Vec<AnalysedRun> = records.into_iter().map(AnalysedRun::of).collect();
    let Judged { text, notes } = write(&runs)?;
    for line in notes {
        output::note(format_args!("{line}"));
    }
    match text {
        Some(text) => Ok(to.write_all(text.as_bytes())?),
        None => Err(Failure::CannotTell),
    }
}

/// The requested format, otherwise the format of the file's extension.
fn format<'a>(options: &Export, all: &'a [ExportFormat]) -> Result<&'a ExportFormat> {
    let known: Vec<_> = all.iter().map(|one| one.extensions).enumerate().collect();
    // The command line allows no other name.
    let place = |name: &String| all.iter().position(|one| one.name == name);
    let asked = options.format.as_ref().and_then(place);
    let chosen = format_of(options.output.as_deref(), asked, None, &known)?;
    Ok(&all[chosen])
}

/// Refuses contradicting options before anything is read or made.
fn check(options: &Export, format: &ExportFormat, all: &[ExportFormat]) -> Result<()> {
    let is_of_rows = |format: &ExportFormat| matches!(format.writer, Writer::Rows(_));
    let is_of_gauges = matches!(format.writer, Writer::Gauges(_));
    let of_rows = options.histogram || options.series || options.ranks;
    if of_rows && !is_of_rows(format) {
        let error =
            Error::usage("this format cannot hold the rows of --histogram, --series and --ranks");
        let formats = all.iter().filter(|format| is_of_rows(format));
        let names: Vec<&str> = formats.map(|format| format.name).collect();
        return Err(error.hint(format!("choose --format {}", names.join(", "))));
    }
    if options.force && !is_of_gauges {
        return Err(Error::usage("--force is for --format prometheus")
            .hint("leave it out, and name a new file with -o"));
    }
    if options.force {
        let Some(path) = options.output.as_deref() else {
            return Err(
                Error::usage("--force without -o").hint("name the file to replace: -o FILE.prom")
            );
        };
        return output::check_replaceable(path, Replaceable::Gauges);
    }
    let gauges = options.output.as_deref().filter(|_| is_of_gauges);
    match gauges.filter(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(output::exists_without_force(path, Replaceable::Gauges)),
        None => Ok(()),
    }
}

fn rows(records: &[RunRecord], options: &Export, format: Format, to: &mut dyn Write) -> Outcome {
    let files = || records.iter().zip(&options.files);
    let name = |record: &RunRecord, path: &Path| RunName::of(&path.display().to_string(), record);
    if options.histogram {
        let mut opened = Vec::new();
        for (record, path) in files() {
            let run = Rc::new(name(record, path));
            opened.push((run, record, iolab_runfile::read_latency(path)?));
        }
        let rows = opened.into_iter().flat_map(|(run, record, latencies)| {
            latencies.map(move |latency| Outcome::Ok((run.clone(), record, latency?)))
        });
        export::buckets(rows, format, to)
    } else if options.series {
        let mut opened = Vec::new();
        for (record, path) in files() {
            let run = Rc::new(name(record, path));
            let latency = iolab_runfile::read_latency_over_time(path)?.peekable();
            opened.push((run, record, iolab_runfile::read_series(path)?, latency));
        }
        let rows = opened
            .into_iter()
            .flat_map(|(run, record, all, mut latency)| {
                all.map(move |series| {
                    let series = series?;
                    // Both are in the order of the samples.
                    let is_own = |one: &Result<SampleLatencyOverTime>| {
                        one.as_ref().map_or(true, |one| one.sample <= series.sample)
                    };
                    let own = std::iter::from_fn(|| latency.next_if(is_own));
                    // A foreign file may hold any number of samples without a series.
                    let own = own.filter(|one| match one {
                        Ok(one) => one.sample == series.sample,
                        Err(_) => true,
                    });
                    let latency = own.collect::<Result<Vec<_>>>()?;
                    Outcome::Ok((run.clone(), record, (series, latency)))
                })
            });
        export::series(rows, format, to)
    } else {
        let answers: Vec<Option<RunAnswer>> = files()
            .map(|(record, path)| answer(record, path))
            .collect::<Result<_>>()?;
        let runs: Vec<Exported<'_>> = files()
            .zip(&answers)
            .map(|((record, path), answer)| (name(record, path), record, answer.as_ref()))
            .collect();
        let write = match options.ranks {
            true => export::ranks,
            false => export::samples,
        };
        let written = write(&runs, format, to);
        Ok(written?)
    }
}

/// The answer of a run; `None` without a question.
fn answer(record: &RunRecord, path: &Path) -> Result<Option<RunAnswer>> {
    match record.experiment.asked {
        None => Ok(None),
        Some(_) => RunAnswer::of(record, iolab_runfile::read_latency(path)?),
    }
}

/// Every run with the latencies of its cells, and of their groups.
fn with_latencies(records: Vec<RunRecord>, options: &Export) -> Result<Vec<RunWithLatencies>> {
    let runs = records.into_iter().zip(&options.files);
    runs.map(|(record, path)| {
        let together = trial_values::of_groups(&record, iolab_runfile::read_latency(path)?)?;
        Ok((record, together))
    })
    .collect()
}
