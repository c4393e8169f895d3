//! `iolab plot`: run files as figures.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::slo::level_values;
use iolab_analysis::trial_values::{CellLatencies, of_cells};
use iolab_figure::{
    Figure, FigureKind, FigureRun, FileFormat, Options, default_kind, draw_as_asked,
};
use iolab_record::{Asked, RunRecord, SampleLatencyOverTime, SampleSeries};
use iolab_report::observation::FiledObservation;
use iolab_runfile::Content;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::{Error, Result};

use crate::arguments::Plot;
use iolab_command::Lists;
use iolab_command::failure::Outcome;
use iolab_command::output::{self, Replaceable, is_stdout};
use iolab_command::run_files::analysed;

/// Draws the figure and writes it to a new file, or SVG to stdout.
pub(crate) fn plot(options: &Plot, lists: &Lists) -> Outcome {
    let format = format(&options.output)?;
    // Before the work is done: a name that is taken would waste it.
    if !is_stdout(&options.output) {
        if options.force {
            output::check_replaceable(&options.output, Replaceable::Figure)?;
        } else if options.output.symlink_metadata().is_ok() {
            return Err(output::exists_without_force(&options.output, Replaceable::Figure).into());
        }
    }
    let figure = figure(options, lists)?;
    write(options, &figure.bytes(format)?)
}

/// The format that the name of a file asks for.
fn format(path: &Path) -> Result<FileFormat> {
    if is_stdout(path) {
        return Ok(FileFormat::Svg);
    }
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "svg" => Ok(FileFormat::Svg),
        "png" => Ok(FileFormat::Png),
        "pdf" => Ok(FileFormat::Pdf),
        _ => Err(Error::usage(format!(
            "the name {} does not end in a known format",
            path.display()
        ))
        .hint("end it in .svg, .png or .pdf; or write SVG to stdout with -o -")),
    }
}

/// Data of a run that only some figures need.
#[derive(Default)]
struct Details {
    latencies: CellLatencies,
    series: Vec<SampleSeries>,
    over_time: Vec<SampleLatencyOverTime>,
}

fn figure(options: &Plot, lists: &Lists) -> Result<Figure> {
    let mut named: Vec<(String, AnalysedRun)> = Vec::new();
    for path in &options.files {
        let record = match iolab_runfile::read_content(path)? {
            Content::Run(record) => *record,
            Content::Observation(kept) if options.files.len() == 1 => {
                return course(options, &lists.seen(*kept, path)?);
            }
            // Among several files it is refused, with the reason.
            Content::Observation(_) => iolab_runfile::read(path)?,
        };
        // The group applies to the whole figure; the figure names the quantity.
        let group = options.y.as_ref().filter(|metric| metric.group.is_some());
        let run = analysed(record, path, group)?;
        named.push((name(path, &options.files, &run), run));
    }
    let mut runs: Vec<FigureRun<'_>> = named
        .iter()
        .map(|(name, run)| FigureRun::new(name, run))
        .collect();
    let mut wanted = wanted(options);
    let mut shown = None;
    if let ([(_, run)], [path]) = (named.as_slice(), options.files.as_slice())
        && let Some(levels) = sought(run.record())
        && let Some(level) = wanted.show_levels(&levels)
    {
        let latencies = iolab_runfile::read_latency(path)?;
        shown = Some(level_values(&level, run.record(), latencies)?);
    }
    if let Some(run) = runs.first_mut() {
        run.level = shown.as_ref();
    }
    let kind = wanted.kind.unwrap_or_else(|| default_kind(&runs));
    if kind.needs_latencies() && options.y.as_ref().is_some_and(|y| y.group.is_some()) {
        // The quantity needs no further choice: all quantiles are shown, for this group.
        wanted.y = None;
    }
    let mut all: Vec<Details> = Vec::new();
    for (path, (_, run)) in options.files.iter().zip(&named) {
        let mut details = Details::default();
        if kind.needs_latencies() {
            let group = run.record().asked_group();
            let latencies = iolab_runfile::read_latency(path)?;
            let own = latencies.filter(|latency| match (latency, group) {
                (Ok(latency), Some(group)) => latency.part.group == group,
                _ => true,
            });
            details.latencies = of_cells(run.record(), own)?;
        }
        if kind.needs_series() {
            details.series = iolab_runfile::read_series(path)?.collect::<Result<_>>()?;
        }
        if kind.needs_latency_over_time(wanted.y) {
            details.over_time = iolab_runfile::read_latency_over_time(path)?.read_all()?;
        }
        all.push(details);
    }
    for (run, details) in runs.iter_mut().zip(&all) {
        run.latencies = &details.latencies;
        run.series = &details.series;
        run.over_time = &details.over_time;
    }
    draw_as_asked(&runs, &wanted)
}

/// The only figure of an observation: its traffic over time.
fn course(options: &Plot, own: &FiledObservation) -> Result<Figure> {
    match options.kind {
        None | Some(FigureKind::Course) => own.seen.figure(&wanted(options)),
        Some(_) => Err(Error::usage(format!(
            "a file of 'iolab {}' has one figure, its course",
            own.kept.command
        ))
        .hint("leave --kind out")),
    }
}

/// The name of a run among several: the name of its file, without the parts that all share. If another file has the same
/// name, the name of the model, or the path.
fn name(path: &Path, all: &[PathBuf], run: &AnalysedRun) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    let same = all.iter().filter(|other| other.file_stem() == Some(stem));
    if same.count() < 2 {
        return stem.to_string_lossy().into_owned();
    }
    match run.analysis().model {
        Some(_) => run.analysis().target.clone(),
        None => path.with_extension("").to_string_lossy().into_owned(),
    }
}

fn wanted(options: &Plot) -> Options {
    let is_log = |log: bool, linear: bool| (log || linear).then_some(log);
    Options {
        kind: options.kind,
        x: options.x.clone(),
        y: options.y.as_ref().map(|metric| metric.response),
        series: options.series.clone(),
        facet: options.facet.clone(),
        log_x: is_log(options.log_x, options.linear_x),
        log_y: is_log(options.log_y, options.linear_y),
        center: options.center,
        points: options.points,
        by: options.by.clone(),
        margin: options.margin,
        title: options.title.clone(),
        width_pt: options.width,
        height_pt: options.height,
        ..Options::default()
    }
}

fn write(options: &Plot, bytes: &[u8]) -> Outcome {
    if options.force && !is_stdout(&options.output) {
        return output::replace(&options.output, bytes, Replaceable::Figure);
    }
    let path = (!is_stdout(&options.output)).then_some(&*options.output);
    let mut to = output::open_raw(path)?;
    to.write_all(bytes)?;
    Ok(to.flush()?)
}

/// The levels that a run searched the rate of; `None` if it searched none.
fn sought(record: &RunRecord) -> Option<ServiceLevels> {
    let question = record.experiment.asked.as_ref()?;
    matches!(question.of, Asked::Limit).then(|| question.levels())
}
