//! A key of the environment: its name, and the type of its value with its text in run files.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

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

/// Types of values, each with its name in RUNFILE.md, how it is read, and how it is written.
macro_rules! values {
    ($($(#[doc = $doc:literal])* $kind:ident($value:ty) = $words:literal, $read:expr, $write:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $kind;

        impl ValueType for $kind {
            type Value = $value;
            const WORDS: &'static str = $words;

            fn read(text: &str) -> Option<$value> {
                let read: fn(&str) -> Option<$value> = $read;
                read(text)
            }

            fn write(value: &$value) -> String {
                let write: fn(&$value) -> String = $write;
                write(value)
            }
        }
    )*};
}

values! {
    /// Text without control characters, of bounded length.
    Text(String) = "text", as_it_is, |text| plain(text);
    /// The text of a whole file, as it is.
    WholeText(String) = "text of a file", as_it_is, String::clone;
    /// Bytes that need not be UTF-8, of any length.
    Hex(Vec<u8>) = "hexadecimal", from_hex, |bytes| to_hex(bytes);
    /// A size; the name ends in `_bytes`.
    Bytes(u64) = "bytes", parsed, u64::to_string;
    /// Another integer; the name contains its unit.
    Whole(u64) = "whole number", parsed, u64::to_string;
    /// A boolean.
    Flag(bool) = "`true` or `false`", parsed, bool::to_string;
    /// A boolean as the kernel writes it.
    Bit(bool) = "0 or 1", bit, |on| u8::from(*on).to_string();
    /// A number with full precision; the name contains its unit.
    Real(f64) = "number", finite, f64::to_string;
    /// A number with one decimal place; the name contains its unit.
    Tenths(f64) = "number", finite, |number| format!("{number:.1}");
}

fn as_it_is(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn plain(value: &str) -> String {
    let plain = value.trim().chars().filter(|c| !c.is_control());
    plain.take(TEXT_MAX).collect()
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn finite(text: &str) -> Option<f64> {
    parsed(text).filter(|number: &f64| number.is_finite())
}

fn bit(text: &str) -> Option<bool> {
    ["0", "1"]
        .iter()
        .position(|digit| *digit == text)
        .map(|place| place == 1)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
