//! Treatment of each setting by consumers other than the engine: another tool, a modelled disk.

/// A field of a trial or a cell, named like its setting, of which some values are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusableField {
    /// Name of the field.
    pub name: &'static str,
    /// Whether the value at hand is refused.
    pub refused: bool,
    /// The consumer's shortcoming or difference, as a sentence about it (`it has no such engine`).
    pub why: &'static str,
}

impl RefusableField {
    /// Why the value at hand is refused, if it is.
    pub fn refusal(&self) -> Option<&'static str> {
        self.refused.then_some(self.why)
    }
}

/// Refuses a value with the first reason that holds.
///
/// # Errors
/// The reason.
pub fn first_refusal(fields: impl AsRef<[RefusableField]>) -> Result<(), String> {
    match fields.as_ref().iter().find_map(RefusableField::refusal) {
        Some(why) => Err(why.to_owned()),
        None => Ok(()),
    }
}

/// The [fields](crate::treatment::RefusableField) that can be refused of a value of `$type`. Each has its conditions and
/// reasons, in the order in which they are reported.
///
/// All other fields are listed too, for the reader and the compiler: `same` for fields that the consumer treats alike,
/// `adapted` for fields that it need not know. Each list of adapted fields names who handles them instead, or the field
/// that decides them. A field in none of the lists does not compile, and the compiler names it. `$spec` is the value that
/// the conditions are about; only its type is checked.
#[macro_export]
macro_rules! treated {
    ($spec:expr => $type:ident {
        same: [$($same:ident),* $(,)?],
        adapted: [$($how:literal: [$($adapted:ident),+ $(,)?]),* $(,)?],
        cannot: [$($field:ident: { $($refused:expr => $why:expr),+ $(,)? }),* $(,)?] $(,)?
    }) => {{
        // Names a field that is in none of the lists.
        let _ = |of: $type| $type { $($same: of.$same,)* $($($adapted: of.$adapted,)+)* $($field: of.$field,)* };
        let _: &$type = $spec;
        [$($($crate::treatment::RefusableField { name: stringify!($field), refused: $refused, why: $why },)+)*]
    }};
}
