//! The numbers of the picture to share: sequential and random access, as far as they were measured.

use iolab_analysis::analysis::Response;
use iolab_analysis::headline_numbers::{AccessOrder, HeadlineCell};
use iolab_figure::labels;
use iolab_figure::preview_image::{PreviewNumber, PreviewText};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{exact_size, format_ns, format_percent};

use crate::doubt;
use crate::notation::{clean, on_page};
use crate::overview::Overview;
use crate::overview::main_numbers::{number, origin};
use crate::report::summary;
use crate::table::cached;

impl Overview<'_> {
    /// The numbers of the picture and its words; `None` where there are no numbers.
    pub(crate) fn picture_parts(&self) -> Option<(Vec<PreviewNumber>, PreviewText)> {
        let pictured = self.pictured();
        (!pictured.is_empty()).then(|| (pictured, self.picture_words()))
    }

    /// The first numbers; for several targets, those with the most requests in flight.
    fn pictured(&self) -> Vec<PreviewNumber> {
        let rows = &self.digest.glance.rows;
        let mut names: Vec<String> = rows.iter().map(|row| row.target.to_owned()).collect();
        labels::leave_out_common(&mut names);
        let varies = self.digest.glance.varies_in_target();
        let is_most = |row: &HeadlineCell<'_>| {
            let mut same = rows
                .iter()
                .filter(|one| (one.target, one.order) == (row.target, row.order));
            same.all(|one| one.in_flight() <= row.in_flight())
        };
        let shown = rows.iter().zip(&names);
        let shown = shown.filter(|(row, _)| !varies || is_most(row));
        let numbers = shown.filter_map(|(row, name)| {
            let name = varies.then_some(name.as_str());
            let place = self.targets.iter().position(|target| target == row.target);
            of_access(row, (name, place.unwrap_or(0)))
        });
        numbers.collect()
    }

    /// The text above and below the numbers of the picture.
    fn picture_words(&self) -> PreviewText {
        let records: Vec<_> = self.inputs.iter().map(|input| input.run.record()).collect();
        let source = records.first().map_or_else(String::new, |record| {
            let day = record.run.started_utc.split('T').next().unwrap_or_default();
            let text = format!("iolab {}, {day}.", record.run.tool_version);
            clean(&text)
        });
        PreviewText {
            title: summary::drives(&records),
            subject: on_page(&self.subject()),
            trust: on_page(&doubt::sentence(&self.digest.trust)),
            source,
        }
    }
}

/// A row of the glance, with the name and index of its target if needed; `None` without a value.
fn of_access<'a>(
    row: &HeadlineCell<'a>,
    (name, target): (Option<&str>, usize),
) -> Option<PreviewNumber> {
    let rate = row.rate()?;
    let trial = row.cell.cell.trial();
    let order = match row.order {
        AccessOrder::Sequential => "SEQ",
        AccessOrder::Random => "RND",
    };
    let at_once = format!("Q{} T{}", trial.depth, trial.workers());
    let name = name.map(|name| format!("{} ", escape_control(name)));
    let within = rate.precision.map_or_else(
        || "no interval".to_owned(),
        |precision| format!("±{}", format_percent(precision)),
    );
    let p99 = row.latency().filter(|_| row.has_tail());
    let p99 = p99.and_then(|latency| latency[Response::P99]);
    let p99 = p99.map_or_else(String::new, |ns| format!("   p99 {}", format_ns(ns)));
    let served = origin(row).or_else(|| cached(row.cell).map(str::to_owned));
    let served = served.map_or_else(String::new, |served| format!("   {served}"));
    Some(PreviewNumber {
        row: on_page(&format!("{order} {}", exact_size(trial.bs))),
        row_note: name.unwrap_or_default() + &at_once,
        column: row.operation.name().to_owned(),
        value: on_page(&number(&rate)),
        unit: rate.unit,
        note: on_page(&format!("{within}{p99}{served}")),
        amount: rate.value,
        interval: rate.interval,
        is_doubtful: row.cell.is_disturbed()
            || !row.cell.is_as_asked()
            || cached(row.cell).is_some(),
        target,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use iolab_analysis::analysed_run::AnalysedRun;
    use iolab_analysis::doubt::DoubtKind;
    use iolab_analysis::trust::TrustLevel;
    use iolab_record::RunRecord;
    use iolab_synthetic::{add_cell, around, record};

    use super::*;
    use crate::overview::Input;

    /// Sequential reads, of which this size is disturbed.
    fn reads(disturbed: Option<&str>) -> Input {
        let mut record: RunRecord = record("read-size", &["bs"]);
        for (size, mb_s) in [("4KiB", 100.0), ("64KiB", 400.0), ("1MiB", 900.0)] {
            let cell = add_cell(&mut record, &[&format!("bs={size}")], &around(mb_s)) as i64;
            let own = record.samples.iter_mut().filter(|one| one.cell == cell);
            for sample in own.filter(|_| disturbed == Some(size)) {
                if let Some(device) = &mut sample.counters.device {
                    device.read_bytes *= 5;
                }
            }
        }
        Input::new(PathBuf::from("read-size.iolab"), AnalysedRun::of(record))
    }

    #[test]
    fn picture_has_the_verdict_of_the_page() {
        let shown = |disturbed| {
            let inputs = [reads(disturbed)];
            let overview = Overview::new(&inputs);
            let (shown, words) = overview.picture_parts().expect("numbers");
            assert_eq!(shown.len(), 1, "{shown:?}");
            let trust = &overview.digest.trust;
            assert_eq!(words.trust, on_page(&doubt::sentence(trust)));
            (trust.level, trust.doubt, shown[0].is_doubtful)
        };
        let disturbed = (TrustLevel::Limited, Some(DoubtKind::OtherTraffic));
        assert_eq!(shown(None), (TrustLevel::Good, None, false));
        assert_eq!(shown(Some("64KiB")), (disturbed.0, disturbed.1, false));
        assert_eq!(shown(Some("1MiB")), (disturbed.0, disturbed.1, true));
    }
}
