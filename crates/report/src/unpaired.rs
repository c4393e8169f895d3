//! Effects within the cells of a run, in words, which `iolab why` cannot measure as two sides, with commands
//! that show more of them.

use std::path::Path;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Claim, Groups, LevelChange, TailObstacle, Unpaired, WhyUnpaired};
use iolab_workload::escape_control::shell_word;
use iolab_workload::response::Response;
use iolab_workload::trial::CacheState;
use iolab_workload::units::{counted, format_ns, format_percent};

use crate::findings::sentences::{finding, with_cell};

/// Sentence on an effect of the run in `file` that has no two sides to compare.
pub fn unpaired(run: &Analysis, one: &Unpaired, file: &Path) -> String {
    match one {
        Unpaired::Change(change, why) => of_change(run, change, *why),
        Unpaired::TwoGroups(groups) => of_groups(run, groups, file),
        Unpaired::LongTail(tail, why) => of_tail(run, tail, *why),
    }
}

fn of_change(run: &Analysis, change: &LevelChange, why: WhyUnpaired) -> String {
    let format = |value| Response::Throughput.format(value);
    let reason = match why {
        WhyUnpaired::Rises => {
            "'iolab why' explains falls. A second run shows whether throughput rises again"
        }
        WhyUnpaired::ReadsAndWrites => {
            "'iolab why' explains falls of reads or of writes alone: measure both, each for as long (--set read_percent=0,100)"
        }
        WhyUnpaired::HasRate => {
            "'iolab why' explains falls of requests without a rate: measure with --set rate=none"
        }
        WhyUnpaired::OwnBounds => {
            "'iolab why' explains falls of trials that end by time or bytes, on space that was written before: measure such ones"
        }
        WhyUnpaired::SeveralCells => {
            "Several cells moved the bytes before it, and 'iolab why' cannot take apart what each has used up: measure one cell alone, and explain that run"
        }
        WhyUnpaired::Preconditioned => {
            "--precondition made the state in which the run began, and trials of 'iolab why' do not begin in it: measure without --precondition, and explain that run"
        }
    };
    let disturbed = match change.is_disturbed {
        true => " Disturbances of its trials, or a suspended machine, could explain it.",
        false => "",
    };
    format!(
        "Cannot explain the change of throughput{} from {} to {} after {}. {reason}.{disturbed}",
        with_cell(run, change.cell),
        format(change.before_mb_s),
        format(change.after_mb_s),
        format_ns(change.since.ns as f64),
    )
}

fn of_groups(run: &Analysis, groups: &Groups, file: &Path) -> String {
    let levels = groups.levels;
    let is_direct = |cell: &CellAnalysis| {
        let mut trials = cell.cell.spec.trials().into_iter();
        trials.any(|trial| trial.cache == CacheState::Direct)
    };
    let has_buffers = run.model.is_none() && run.cell(groups.most.cell).is_some_and(is_direct);
    let buffers = match has_buffers {
        true => {
            "; --set buffer_memory=contiguous,kernel shows whether the memory of buffers makes them"
        }
        false => "",
    };
    let more = match groups.cells.len() {
        0 | 1 => String::new(),
        n => format!(" (and of {})", counted(n as u64 - 1, "more cell")),
    };
    format!(
        "Cannot explain the two groups of trials{}{more}, {} around {} and the others around {}: 'iolab why' compares cells, and not trials of one. 'iolab plot {} --kind order' shows when each group occurs{buffers}.",
        with_cell(run, groups.most),
        format_percent(levels.low_share),
        run.response.format(levels.low_median),
        run.response.format(levels.high_median),
        shell_word(&file.to_string_lossy()),
    )
}

fn of_tail(run: &Analysis, tail: &Claim, why: TailObstacle) -> String {
    let reason = match why {
        TailObstacle::HasRate => {
            "'iolab why' explains slow requests of cells without a rate (--set rate=none)"
        }
        TailObstacle::OwnBounds => {
            "'iolab why' explains slow requests of trials that end by time or bytes, on space that was written before: measure such ones"
        }
    };
    format!(
        "Cannot explain slow requests. {} {reason}.",
        finding(tail, &[run]).text
    )
}
