//! Columns of the quantities that are summarised over the trials of a cell.

use iolab_analysis::analysis::Response;
use iolab_stats::Summary;
use iolab_workload::table;

use super::{Columns, ExportedCell};
use crate::data_column::DataColumn;

/// Trials, and the quantities that are summarised over them.
pub(super) fn trials<'a>() -> Columns<'a> {
    let mut columns = Vec::from(table! {
        DataColumn::whole("n", "measured trials, warm-up and failed ones excluded", |row: &ExportedCell<'_>| Some(row.cell.n)).known();
        DataColumn::whole("failed", "trials that failed", |row: &ExportedCell<'_>| Some(row.cell.failed)).known();
    });
    for response in Response::ALL {
        let times = match response.is_latency() {
            true => ": service time, or response time where there is a rate",
            false => "",
        };
        columns.extend(PARTS.map(|(part, doc, value)| {
            let name = format!("{}_{part}", response.column());
            let doc = format!("{doc} of the {response} of a trial{times}");
            DataColumn::number(&name, &doc, move |row: &ExportedCell<'_>| {
                row.cell.of[response].as_ref().and_then(value)
            })
        }));
    }
    columns
}

/// A part of a summary: the end of its column's name, its description, its value.
pub(super) type SummaryPart = (&'static str, &'static str, fn(&Summary) -> Option<f64>);

pub(super) const PARTS: [SummaryPart; 14] = table! {
    ("median", "median over the trials", |s| Some(s.median));
    ("median_low", "low end of the exact interval of the median", |s| s.median_interval.map(|i| i.low));
    ("median_high", "high end of the exact interval of the median", |s| s.median_interval.map(|i| i.high));
    ("median_confidence", "confidence of the exact interval of the median, a share,", |s| s.median_interval.map(|i| i.confidence));
    ("median_interpolated_low", "low end of the interpolated 95 % interval of the median, which is narrower and not exact,",
     |s| s.median_interpolated.map(|i| i.low));
    ("median_interpolated_high", "high end of the interpolated 95 % interval of the median", |s| s.median_interpolated.map(|i| i.high));
    ("q1", "first quartile over the trials", |s| { Some(s.quartiles()?.0) });
    ("q3", "third quartile over the trials", |s| { Some(s.quartiles()?.1) });
    ("min", "least value over the trials", |s| Some(s.min));
    ("max", "greatest value over the trials", |s| Some(s.max));
    ("mean", "mean over the trials", |s| s.mean);
    ("mean_low", "low end of the 95 % t interval of the mean", |s| s.mean_interval.map(|i| i.low));
    ("mean_high", "high end of the 95 % t interval of the mean", |s| s.mean_interval.map(|i| i.high));
    ("sd", "standard deviation over the trials", |s| s.sd);
};
