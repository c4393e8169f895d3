//! Macros for columns at a path into a row.

/// A column of numbers or flags: `number`, `real` or `Flag`, name, type of the rows, path. Its meaning
/// follows, as for all columns: `.doc(...)`.
macro_rules! column {
    ($make:ident, $name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::of($name, $crate::column::Access::$make(
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*),
            |row, value| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = value,
        ))
        .null(null!($(? $(.$in)+)*))
    };
    ($make:ident, $name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)* ?) => {
        $crate::column::Column::of($name, $crate::column::Access::$make(
            |row: &$type| row.$($at).+ $(.as_ref()? $(.$in)+)*,
            |row, value| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = Some(value),
        ))
        .null($crate::column::Null::Free)
    };
}

/// Condition under which a value is NULL: one of these parts of its path is missing.
macro_rules! null {
    () => {
        $crate::column::Null::Never
    };
    ($($part:tt)+) => {
        $crate::column::Null::Account
    };
}

/// A column of numbers.
macro_rules! number {
    ($($of:tt)+) => { column!(number, $($of)+) };
}

/// A column of floating-point numbers.
macro_rules! real {
    ($($of:tt)+) => { column!(real, $($of)+) };
}

/// A column of flags.
macro_rules! flag {
    ($($of:tt)+) => { column!(Flag, $($of)+) };
}

/// A column of text.
macro_rules! text {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::of($name, $crate::column::Access::Text(
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*.as_str().into()),
            |row, text| {
                text.clone_into(&mut row.$($at).+ $(.get_or_insert_default() $(.$in)+)*);
                true
            },
        ))
        .null(null!($(? $(.$in)+)*))
    };
    ($name:expr, $type:ty, $($at:ident).+ ?) => {
        $crate::column::Column::of($name, $crate::column::Access::Text(
            |row: &$type| row.$($at).+.as_deref().map(Into::into),
            |row, text| {
                row.$($at).+ = Some(text.to_owned());
                true
            },
        ))
        .null($crate::column::Null::Free)
    };
}

/// A column of words of an enum.
macro_rules! word {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*, $words:ty) => {
        $crate::column::Column::of($name, $crate::column::Access::Text(
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*.name().into()),
            |row, text| {
                let word = text.parse::<$words>();
                word.map(|word| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = word).is_ok()
            },
        ))
        .one_of(<$words>::NAMES)
        .null(null!($(? $(.$in)+)*))
    };
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)* ?, $words:ty) => {
        $crate::column::Column::of($name, $crate::column::Access::Text(
            |row: &$type| Some(row.$($at).+ $(.as_ref()? $(.$in)+)*?.name().into()),
            |row, text| {
                let word = text.parse::<$words>();
                word.map(|word| row.$($at).+ $(.get_or_insert_default() $(.$in)+)* = Some(word)).is_ok()
            },
        ))
        .one_of(<$words>::NAMES)
        .null($crate::column::Null::Free)
    };
}

/// A column of a value that serde reads and writes, as JSON.
macro_rules! json_text {
    ($name:expr, $type:ty, $($at:ident).+ $(? $(.$in:tt)+)*) => {
        $crate::column::Column::of($name, $crate::column::Access::Text(
            |row: &$type| Some(serde_json::json!(row.$($at).+ $(.as_ref()? $(.$in)+)*).to_string().into()),
            |row, text| {
                let value = serde_json::from_str(text);
                let place = &mut row.$($at).+ $(.get_or_insert_default() $(.$in)+)*;
                value.map(|value| *place = value).is_ok()
            },
        ))
        .null(null!($(? $(.$in)+)*))
    };
}

/// A column of any integer type; its range fits that type.
macro_rules! whole {
    ($name:literal, $type:ty, $($field:ident).+ as $as:ty) => {
        $crate::column::Column::of($name, $crate::column::Access::number(
            |row: &$type| Some(row.$($field).+ as u64),
            |row, n| row.$($field).+ = n as $as,
        ))
        .between(0, if size_of::<$as>() == 4 { u32::MAX as u64 } else { i64::MAX as u64 })
    };
}

/// Names all fields of a type of counters that have columns: a field missing here does not compile.
macro_rules! names_all {
    ($type:path: $($field:ident)+) => {
        let _: fn($type) -> $type = |of| {
            use $type as Counted;
            Counted { $($field: of.$field),+ }
        };
    };
}
