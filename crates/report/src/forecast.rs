//! What plans will do, as a table.

use iolab_plan::forecast::{Forecast, Written};
use iolab_spec::quantity::format_bytes;
use iolab_spec::units::rough_duration;

use crate::layout::{self, Column};
use iolab_spec::plain::plain;

/// One row per plan, for a terminal of `width` columns.
pub fn text(forecasts: &[Forecast], width: u16) -> String {
    let column = |heading: &str, value: &dyn Fn(&Forecast) -> String| {
        Column::new(heading, 0, forecasts.iter().map(value))
    };
    let columns = vec![
        column("experiment", &|f| plain(&f.experiment).into_owned()).left(),
        column("cells", &|f| f.cells.to_string()),
        column("trials", &|f| match f.trials {
            (least, most) if least < most => format!("{least} to {most}"),
            (_, most) => most.to_string(),
        }),
        column("measuring", &|f| match f.time.0 {
            Some(least) if least < f.time.1 => {
                format!("{} to {}", rough_duration(least), rough_duration(f.time.1))
            }
            _ => format!("up to {}", rough_duration(f.time.1)),
        }),
        column("trials write", &|f| written(f.written)),
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
