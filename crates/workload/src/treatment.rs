//! What becomes of each setting of a trial where something other than the engine carries it out: another tool, a modelled disk.

/// What a consumer makes of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It does the same.
    Same,
    /// It need not know the field: who sees to it instead, or what other field decides.
    Adapted(&'static str),
    /// Some values are refused.
    Cannot {
        /// Whether the value at hand is one of them.
        refused: bool,
        /// What the consumer lacks or does otherwise, as a sentence about it (`it has no such engine`).
        why: &'static str,
    },
}

/// A field of a trial or a cell, named like its setting, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreatedField {
    /// Name of the field.
    pub name: &'static str,
    /// What becomes of it.
    pub treatment: Treatment,
}

impl TreatedField {
    /// Why the value at hand is refused, if it is.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.treatment {
            Treatment::Cannot { refused: true, why } => Some(why),
            Treatment::Cannot { refused: false, .. } | Treatment::Adapted(_) | Treatment::Same => {
                None
            }
        }
    }
}

/// The [fields](treatment::TreatedField) of a value of a type with named fields: those that are the same, those that are adapted,
/// with the reason for each list, and those of which values are refused, each with its conditions and reasons, in the order in
/// which they are said. A field that stands in none of the lists does not compile, and is named.
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
        use $crate::treatment::{TreatedField, Treatment};
        let field = |name, treatment| TreatedField { name, treatment };
        [
            $(field(stringify!($same), Treatment::Same),)*
            $($(field(stringify!($adapted), Treatment::Adapted($how)),)+)*
            $($(field(stringify!($field), Treatment::Cannot { refused: $refused, why: $why }),)+)*
        ]
    }};
}
