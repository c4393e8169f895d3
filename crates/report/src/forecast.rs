//! What plans will do, as a table.

use iolab_plan::forecast::{Forecast, Written};
use iolab_spec::quantity::format_bytes;
use iolab_spec::units::rough_duration;

use crate::layout::{self, Column};
use iolab_spec::plain::plain;

/// One row per plan, for a terminal of `width` columns. What all plans write is said below it too: that column goes first.
pub fn text(forecasts: &[Forecast], width: u16) -> String {
    let column = |heading: &str, dispensable, value: &dyn Fn(&Forecast) -> String| {
        Column::new(heading, dispensable, forecasts.iter().map(value))
    };
    let columns = vec![
        column("experiment", 0, &|f| plain(&f.experiment).into_owned()).left(),
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
        column("trials write", 3, &|f| written(f.written)),
    ];
    layout::text(columns, width)
}

/// `at most 20 MiB`.
pub fn written(written: Written) -> String {
    match written {
        Written::AtMost(0) => "nothing".to_owned(),
        Written::AtMost(bytes) => format!("at most {}", format_bytes(bytes as f64)),
        Written::Unbounded => "what fits into the time".to_owned(),
    }
}
