//! Enums with one name per value, for definitions and run files.

/// Defines an enum with its names: one list serves parsing, printing and messages. `else FUNCTION` handles other texts: a second
/// name of a value, or an error that explains why there is no such name.
#[macro_export]
macro_rules! named {
    (
        $(#[$outer:meta])*
        pub enum $type:ident: $what:literal $(, else $other:path)? {
            $($(#[$inner:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$inner])* $value,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];
            /// The names of the values, in their order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in definitions, run files and exports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                $(if let Some(answer) = $other(text) {
                    return answer;
                })?
                let of = |value: &&Self| value.name() == text;
                Self::ALL.iter().find(of).copied().ok_or_else(|| {
                    $crate::names::unknown_word($what, text, Self::NAMES)
                })
            }
        }
    };
}

pub(crate) use named;
