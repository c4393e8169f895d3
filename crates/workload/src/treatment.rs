//! What becomes of each setting of a trial where something other than the engine carries it out: another tool, a modelled disk.

/// A field of a trial or a cell, named like its setting, of which some values are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusableField {
    /// Name of the field.
    pub name: &'static str,
    /// Whether the value at hand is one of them.
    pub refused: bool,
    /// What the consumer lacks or does otherwise, as a sentence about it (`it has no such engine`).
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

/// The [fields](crate::treatment::RefusableField) of a value of a type with named fields of which some values are refused, each with its
/// conditions and reasons, in the order in which they are said. All other fields are listed too, for the reader and the compiler:
/// those that the consumer carries out the same, and those that it need not know, each list with who sees to them instead, or what
/// other field decides. A field that stands in none of the lists does not compile, and is named. `$spec` is the value that the
/// conditions are about; it is only held to be of the type.
#[macro_export]
macro_rules! treated {
    ($spec:expr => $type:ident {
        same: [$($same:ident),* $(,)?],
        adapted: [$($how:literal: [$($adapted:ident),+ $(,)?]),* $(,)?],
        cannot: [$($field:ident: { $($refused:expr => $why:expr),+ $(,)? }),* $(,)?] $(,)?
    }) => {{
        // Names a field that stands in none of the lists.
        let _ = |of: $type| $type { $($same: of.$same,)* $($($adapted: of.$adapted,)+)* $($field: of.$field,)* };
        let _: &$type = $spec;
        [$($($crate::treatment::RefusableField { name: stringify!($field), refused: $refused, why: $why },)+)*]
    }};
}
