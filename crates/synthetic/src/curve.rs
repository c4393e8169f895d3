//! How throughput depends on one setting, in truth.

use iolab_record::Cell;
use iolab_workload::settings::{Setting, Value};

/// A factor on the throughput, by the number that a setting has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curve {
    /// The same everywhere.
    Flat,
    /// Each request has a fixed cost beside that of its bytes: `x / (x + half)`, half of the most at `half`.
    Amortised {
        /// Where half of the most is reached.
        half: f64,
    },
    /// In proportion up to a place, and the same from there on.
    Plateau {
        /// Where it begins.
        from: f64,
    },
    /// From a place on this ratio is left.
    Cliff {
        /// The first number past it.
        from: f64,
        /// Throughput past it over throughput before it.
        ratio: f64,
    },
    /// At one place this ratio is left.
    Dip {
        /// The place.
        at: f64,
        /// Throughput there over throughput beside it.
        ratio: f64,
    },
}

impl Curve {
    /// The factor at a place, without unit.
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

    /// The factor of a cell, by its value of a setting.
    ///
    /// # Panics
    /// Where there is no such setting, or it has no number.
    pub(crate) fn of(&self, setting: &str, cell: &Cell) -> f64 {
        let found = Setting::find(setting).unwrap_or_else(|| panic!("no setting {setting}"));
        match found.value(&cell.spec) {
            Value::Number(number) => self.factor(number as f64),
            _ => panic!("{setting} is no number"),
        }
    }
}
