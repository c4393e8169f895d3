//! `iolab export`: samples, their intervals and latency buckets for other programs.

use iolab_lab::Result;
use iolab_lab::record::RunRecord;
use iolab_lab::runfile::{self, SampleLatency};
use iolab_report::export::{self, LatencyRow, SeriesRow};
use iolab_report::tidy::Format;

use crate::arguments::{Export, ExportFormat};
use crate::exit::Outcome;
use crate::output;

/// Writes the rows to stdout or to a new file.
pub(crate) fn export(options: &Export) -> Outcome {
    let records: Vec<RunRecord> = options
        .files
        .iter()
        .map(|path| runfile::read(path))
        .collect::<Result<_>>()?;
    let format = match options.format {
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Json => Format::Json,
    };
    let mut to = output::open(options.output.as_deref())?;
    if options.histogram {
        let mut opened = Vec::new();
        for (record, path) in records.iter().zip(&options.files) {
            opened.push((&record.experiment.name, runfile::read_latency(path)?));
        }
        let rows = opened
            .into_iter()
            .flat_map(|(name, latencies)| latencies.map(|latency| row(name, latency)));
        export::buckets(rows, format, &mut to)
    } else if options.series {
        let mut opened = Vec::new();
        for (record, path) in records.iter().zip(&options.files) {
            opened.push((&record.experiment.name, runfile::read_series(path)?));
        }
        let rows = opened.into_iter().flat_map(|(name, all)| {
            all.map(|series| {
                Ok(SeriesRow {
                    experiment: name.clone(),
                    series: series?,
                })
            })
        });
        export::series(rows, format, &mut to)
    } else {
        Ok(export::samples(&records, format, &mut to)?)
    }
}

fn row(experiment: &str, latency: Result<SampleLatency>) -> Outcome<LatencyRow> {
    let latency = latency?;
    Ok(LatencyRow {
        experiment: experiment.to_owned(),
        sample: latency.sample,
        direction: latency.direction.to_owned(),
        histogram: latency.histogram,
    })
}
