//! True dependence of throughput on one setting.

use iolab_record::Cell;
use iolab_workload::settings::{Setting, Value};

/// A factor on the throughput as a function of a setting's number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curve {
    /// A factor of 1 everywhere.
    Flat,
    /// Throughput with a fixed cost per request: `x / (x + half)`.
    Amortised {
        /// Number at which half of the maximum is reached.
        half: f64,
    },
    /// Proportional up to a point, and constant from there.
    Plateau {
        /// Start of the constant part.
        from: f64,
    },
    /// Multiplied by a ratio from some point on.
    Cliff {
        /// First number of the lower part.
        from: f64,
        /// Throughput past it over throughput before it.
        ratio: f64,
    },
    /// Multiplied by a ratio at one point.
    Dip {
        /// Number with the changed throughput.
        at: f64,
        /// Throughput there over throughput elsewhere.
        ratio: f64,
    },
}

impl Curve {
    /// Factor at a point, without unit.
    pub fn factor(&self, x: f64) -> f64 {
        match *self {
            Curve::Flat => 1.0,
            Curve::Amortised { half } => x / (x + half),
            Curve::Plateau { from } => (x / from).min(1.0),
            Curve::Cliff { from, ratio } if x >= from => ratio,
            Curve::Dip { at, ratio } if x == at => ratio,
            Curve::Cliff { .. } | Curve::Dip { .. } => 1.0,
        }
    }

    /// Factor of a cell, by its value of a setting.
    ///
    /// # Panics
    ///
    /// If there is no such setting, or its value is not a number.
    pub(crate) fn of(&self, setting: &str, cell: &Cell) -> f64 {
        let found = Setting::find(setting).unwrap_or_else(|| panic!("no setting {setting}"));
        match found.value(&cell.spec) {
            Value::Number(number) => self.factor(number as f64),
            _ => panic!("{setting} is not a number"),
        }
    }
}
