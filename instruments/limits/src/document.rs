//! The limits of every target as JSON, with their intervals.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::export::Judged;
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limit::{Limit, Measured, storages};
use crate::{iocost, seastar};

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Limit")]
pub(crate) struct LimitRow {
    /// The target.
    target: String,
    /// The format that has the limit: `iocost` or `seastar`.
    format: &'static str,
    #[serde(flatten)]
    limit: Limit,
}

/// The limits of all targets, of each format of which a point was measured.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no point was measured, or some points of a format only.
pub(crate) fn rows(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut rows, mut notes, mut is_open) = (Vec::new(), Vec::new(), false);
    for storage in storages(runs, |target, _| Ok(target.to_owned()))? {
        let random = seastar::random_bs(&storage);
        for (format, points, experiment) in [
            ("iocost", &iocost::POINTS[..], iocost::EXPERIMENT),
            ("seastar", &seastar::points(random)[..], seastar::EXPERIMENT),
        ] {
            let cells = points.iter().map(|point| point.cell(&storage));
            if cells
                .collect::<Result<Vec<_>>>()?
                .iter()
                .flatten()
                .next()
                .is_none()
            {
                continue;
            }
            let measured = Measured::of(runs, &storage, points, experiment)?;
            is_open |= !measured.reasons.is_empty();
            notes.extend(measured.notes(&storage.name));
            rows.extend(measured.limits.into_iter().map(|limit| LimitRow {
                target: storage.name.clone(),
                format,
                limit,
            }));
        }
    }
    if rows.is_empty() && !is_open {
        return Err(Error::usage("no limit was measured")
            .hint("measure limits with: iolab study --suite limits"));
    }
    let text = serde_json::to_string_pretty(&rows)
        .map_err(|error| Error::failed(format!("cannot write the limits: {error}")))?;
    Ok(Judged {
        text: (!is_open).then(|| text + "\n"),
        notes,
    })
}
