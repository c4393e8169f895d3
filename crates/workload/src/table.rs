//! Tables in the source, a row a line.

/// An array whose rows stand on a line or two each, where rustfmt would make five lines of each.
#[macro_export]
macro_rules! table {
    ($($row:expr;)+) => {
        [$($row),+]
    };
}
