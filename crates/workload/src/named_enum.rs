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

        impl $crate::serde::Serialize for $type {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                let name = <std::borrow::Cow<'_, str>>::deserialize(from)?;
                name.parse().map_err($crate::serde::de::Error::custom)
            }
        }

        impl $crate::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({"type": "string", "enum": Self::NAMES})
            }
        }
    };
}

pub(crate) use named;
