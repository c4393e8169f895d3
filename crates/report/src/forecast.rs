//! What plans will do, as a table.

use iolab_plan::forecast::{Forecast, Written};
use iolab_workload::quantity::format_bytes;
use iolab_workload::units::rough_duration;

use std::time::Duration;

use crate::layout::{self, Column};
use iolab_workload::escape_control::escape_control;

/// A rate that storage may have, bytes per second, for an idea of what a time comes to.
const RATE: f64 = 500e6;

/// One row per plan, for a terminal of `width` columns. What all plans write is said below it too: that column goes first.
pub fn text(forecasts: &[Forecast], width: u16) -> String {
    let column = |heading: &str, dispensable, value: &dyn Fn(&Forecast) -> String| {
        Column::new(heading, dispensable, forecasts.iter().map(value))
    };
    let columns = vec![
        column("experiment", 0, &|f| {
            escape_control(&f.experiment).into_owned()
        })
        .left(),
        column("cells", 1, &|f| f.cells.to_string()),
        column("trials", 2, &|f| match f.trials {
            (least, most) if least < most => format!("{least} to {most}"),
            (_, most) => most.to_string(),
        }),
        column("measuring", 0, &|f| match f.time.0 {
            Some(least) if least < f.time.1 => {
                format!("{} to {}", rough_duration(least), rough_duration(f.time.1))
            }
            _ => format!("up to {}", rough_duration(f.time.1)),
        }),
        column("trials write", 3, &|f| written(f)),
    ];
    layout::text(columns, width)
}

/// What all the plans together write.
pub fn written_by_all(forecasts: &[Forecast]) -> String {
    let all = forecasts.iter().map(|forecast| forecast.written);
    let time = forecasts.iter().map(|forecast| forecast.time.1);
    in_words(
        all.fold(Written::AtMost(0), Written::and),
        time.fold(Duration::ZERO, Duration::saturating_add),
    )
}

/// What a plan writes: `at most 20 MiB`.
pub fn written(forecast: &Forecast) -> String {
    in_words(forecast.written, forecast.time.1)
}

fn in_words(written: Written, time: Duration) -> String {
    let at_rate = RATE * time.as_secs_f64();
    let example = format!("(at {} MB/s: {})", RATE / 1e6, format_bytes(at_rate));
    match written {
        Written::AtMost(0) => "nothing".to_owned(),
        Written::AtMost(most) if most as f64 > at_rate => {
            format!("at most {} {example}", format_bytes(most as f64))
        }
        Written::AtMost(most) => format!("at most {}", format_bytes(most as f64)),
        Written::Unbounded => format!("what fits into the time {example}"),
    }
}
