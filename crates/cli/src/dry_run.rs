//! What a command that measures would do, printed before anything is touched.

use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_peers::beyond_budget;
use iolab_plan::cells::Plan;
use iolab_plan::forecast::Forecast;
use iolab_report::forecast;
use iolab_storage::{Need, Size};
use iolab_workload::Result;
use iolab_workload::quantity::format_bytes;
use iolab_workload::units::format_size;

use crate::exit::Outcome;
use crate::output;

/// Prints the forecast of these plans; `needs` is what they need of each target, empty where they run programs, and `does` what
/// else to say of what they do.
pub(crate) fn print(
    plans: &[Plan],
    targets: &[PathBuf],
    needs: &[Need],
    does: &[String],
) -> Outcome {
    let forecasts: Vec<Forecast> = plans.iter().map(Forecast::of).collect();
    let mut to = output::open(None)?;
    writeln!(to, "Dry run: nothing is touched.\n")?;
    write!(to, "{}", forecast::text(&forecasts, output::style().width))?;
    for text in does {
        writeln!(to, "{text}")?;
    }
    let mut left_out: Vec<&str> = plans.iter().filter_map(Plan::left_out).collect();
    left_out.dedup();
    for text in left_out {
        writeln!(to, "{text}")?;
    }
    for text in plans.iter().filter_map(Plan::shortfall) {
        writeln!(to, "{text}")?;
    }
    for text in plans.iter().filter_map(beyond_budget) {
        writeln!(to, "{text}")?;
    }
    for (number, path) in targets.iter().enumerate() {
        writeln!(to, "\nTarget: {}", path.display())?;
        if let Some(need) = needs.get(number) {
            writeln!(to, "{}", place(path, need)?)?;
        }
    }
    writeln!(
        to,
        "All trials together write: {}",
        forecast::written_by_all(&forecasts)
    )?;
    Ok(to.flush()?)
}

/// What is used of the target, and the room that there is for it.
fn place(path: &Path, need: &Need) -> Result<String> {
    let (Size::Exactly(bytes) | Size::AtMost { most: bytes, .. }) = need.size;
    if !path.is_dir() {
        let mut text = format!("Bytes used of it: up to {}", format_size(bytes));
        // A plan may be for a machine that has the target.
        let demands = match path.exists() {
            true => iolab_storage::taken(path, need)?,
            false => Vec::new(),
        };
        for demand in demands {
            text.push_str(&format!("\nFree space: {demand}"));
            if !demand.fits() {
                text.push_str("\nToo little is free: iolab refuses to write to it");
            }
        }
        return Ok(text);
    }
    let free = iolab_storage::free(path)?;
    let free = free.map_or("unknown".to_owned(), |bytes| format_bytes(bytes as f64));
    Ok(format!(
        "Scratch file: {}, removed at the end; free for it: {free}",
        format_size(bytes)
    ))
}
