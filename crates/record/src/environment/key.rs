//! A key of the environment: its name, and the type of its value with its text in run files.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::marker::PhantomData;

/// Longest text stored, characters: device models and kernel banners are shorter.
pub(super) const TEXT_MAX: usize = 500;

/// The type of a key's values, with their form in run files.
pub trait ValueType {
    /// The type in memory.
    type Value;
    /// The name of the type in RUNFILE.md.
    const WORDS: &'static str;
    /// Parses a text, which may come from a foreign file; `None` for an invalid one.
    fn read(text: &str) -> Option<Self::Value>;
    /// The text of a value; empty for nothing to store.
    fn write(value: &Self::Value) -> String;
}

/// Text without control characters, of bounded length.
#[derive(Debug, Clone, Copy)]
pub struct Text;

impl ValueType for Text {
    type Value = String;
    const WORDS: &'static str = "text";

    fn read(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn write(value: &String) -> String {
        let plain = value.trim().chars().filter(|c| !c.is_control());
        plain.take(TEXT_MAX).collect()
    }
}

/// The text of a whole file, as it is.
#[derive(Debug, Clone, Copy)]
pub struct WholeText;

impl ValueType for WholeText {
    type Value = String;
    const WORDS: &'static str = "text of a file";

    fn read(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn write(value: &String) -> String {
        value.clone()
    }
}

/// Bytes that need not be UTF-8, of any length.
#[derive(Debug, Clone, Copy)]
pub struct Hex;

impl ValueType for Hex {
    type Value = Vec<u8>;
    const WORDS: &'static str = "hexadecimal";

    fn read(text: &str) -> Option<Vec<u8>> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        });
        pairs.collect()
    }

    fn write(value: &Vec<u8>) -> String {
        let mut hex = String::new();
        for byte in value {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

/// Types whose values are read with `FromStr` and written with `Display`.
macro_rules! plain {
    ($($(#[doc = $doc:literal])* $kind:ident($value:ty) = $words:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $kind;

        impl ValueType for $kind {
            type Value = $value;
            const WORDS: &'static str = $words;

            fn read(text: &str) -> Option<$value> {
                text.parse().ok()
            }

            fn write(value: &$value) -> String {
                value.to_string()
            }
        }
    )*};
}

plain! {
    /// A size; the name ends in `_bytes`.
    Bytes(u64) = "bytes";
    /// Another integer; the name contains its unit.
    Whole(u64) = "whole number";
    /// A boolean.
    Flag(bool) = "`true` or `false`";
}

/// A boolean as the kernel writes it.
#[derive(Debug, Clone, Copy)]
pub struct Bit;

impl ValueType for Bit {
    type Value = bool;
    const WORDS: &'static str = "0 or 1";

    fn read(text: &str) -> Option<bool> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    fn write(value: &bool) -> String {
        u8::from(*value).to_string()
    }
}

/// A number with full precision; the name contains its unit.
#[derive(Debug, Clone, Copy)]
pub struct Real;

impl ValueType for Real {
    type Value = f64;
    const WORDS: &'static str = "number";

    fn read(text: &str) -> Option<f64> {
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn write(value: &f64) -> String {
        value.to_string()
    }
}

/// A number with one decimal place; the name contains its unit.
#[derive(Debug, Clone, Copy)]
pub struct Tenths;

impl ValueType for Tenths {
    type Value = f64;
    const WORDS: &'static str = "number";

    fn read(text: &str) -> Option<f64> {
        Real::read(text)
    }

    fn write(value: &f64) -> String {
        format!("{value:.1}")
    }
}

/// A key with values of one type.
#[derive(Debug)]
pub struct Key<K> {
    name: Cow<'static, str>,
    kind: PhantomData<fn() -> K>,
}

impl<K: ValueType> Key<K> {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind: PhantomData,
        }
    }

    /// Its name, including the unit.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Keys whose names differ in one part.
#[derive(Debug)]
pub struct Family<A, K> {
    before: &'static str,
    after: &'static str,
    kind: PhantomData<fn(A) -> K>,
}

impl<A: Display, K: ValueType> Family<A, K> {
    pub(super) const fn new(before: &'static str, after: &'static str) -> Self {
        Self {
            before,
            after,
            kind: PhantomData,
        }
    }

    /// The key for one value of that part.
    pub fn of(&self, part: A) -> Key<K> {
        Key {
            name: format!("{}{part}{}", self.before, self.after).into(),
            kind: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_plain_and_of_bounded_length() {
        let of = |text: &str| Text::write(&text.to_owned());
        assert_eq!(of("  x\u{1b}[31my\n"), "x[31my");
        assert_eq!(of(" \n"), "");
        assert_eq!(of(&"z".repeat(9_999)).len(), TEXT_MAX);
    }

    #[test]
    fn any_bytes_come_back() {
        let bytes = b"/a \xff\x00\xfe".to_vec();
        let hex = Hex::write(&bytes);
        assert_eq!(hex, "2f6120ff00fe");
        assert_eq!(Hex::read(&hex), Some(bytes));
        let long = vec![7; 4_096];
        assert_eq!(Hex::read(&Hex::write(&long)), Some(long));
        for nonsense in ["0", "0g", "é"] {
            assert_eq!(Hex::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn invalid_values_read_as_none() {
        for text in ["", "4k", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(Bytes::read(text), None, "{text}");
        }
        for text in ["", "NaN", "inf", "x"] {
            assert_eq!(Tenths::read(text), None, "{text}");
        }
        assert_eq!((Flag::read("1"), Bit::read("true")), (None, None));
    }

    #[test]
    fn values_are_written_as_run_files_have_them() {
        assert_eq!(Bytes::write(&17_179_869_184), "17179869184");
        assert_eq!(
            (Flag::write(&true), Bit::write(&true)),
            ("true".into(), "1".into())
        );
        assert_eq!(
            (Real::write(&510.0), Real::write(&0.25)),
            ("510".into(), "0.25".into())
        );
        assert_eq!(Tenths::write(&600.0), "600.0");
    }
}
