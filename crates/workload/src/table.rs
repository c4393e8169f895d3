//! Tables in the source, a row a line.

/// An array with one or two lines a row, for which rustfmt would use five.
#[macro_export]
macro_rules! table {
    ($($row:expr;)+) => {
        [$($row),+]
    };
}
