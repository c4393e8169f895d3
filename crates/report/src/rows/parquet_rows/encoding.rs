//! Values of a column as bytes.
//!
//! Source: github.com/apache/parquet-format, Encodings.md.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::thrift::varint;
use crate::values::{ValueKind, text_of};

/// Distinct values of a row group above which none of them is looked up.
const DISTINCT_MAX: usize = 1 << 14;
/// Values that a packed run is made of at once.
const PACK: usize = 8;

/// The values of a column in a row group that are there.
pub(super) enum Values {
    /// One after the other.
    Plain(Vec<u8>),
    /// Those that differ, and for each value its place among them.
    Dictionary {
        distinct: Vec<u8>,
        count: usize,
        places: Vec<u8>,
    },
}

/// Which of these values are there, and these.
pub(super) fn encoded(values: &[Value], kind: ValueKind) -> (Vec<u8>, Values) {
    let mut levels = Vec::with_capacity(values.len());
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(values.len());
    for value in values {
        let there = push(&mut bytes, value, kind);
        levels.push(u32::from(there));
        if there {
            ends.push(bytes.len());
        }
    }
    let levels = hybrid(&levels, 1);
    let values = match kind {
        ValueKind::Flag => Values::Plain(bits(&bytes)),
        _ => dictionary(&bytes, &ends).unwrap_or(Values::Plain(bytes)),
    };
    (levels, values)
}

/// Appends a value, unless it is missing or not of this kind.
fn push(to: &mut Vec<u8>, value: &Value, kind: ValueKind) -> bool {
    let fixed = match kind {
        ValueKind::Flag => return value.as_bool().map(|on| to.push(on.into())).is_some(),
        ValueKind::Integer => value.as_i64().map(i64::to_le_bytes),
        ValueKind::Number => value.as_f64().map(f64::to_le_bytes),
        ValueKind::Text if value.is_null() => None,
        ValueKind::Text => {
            let text = text_of(Some(value));
            to.extend_from_slice(&(text.len() as u32).to_le_bytes());
            to.extend_from_slice(text.as_bytes());
            return true;
        }
    };
    fixed.map(|fixed| to.extend_from_slice(&fixed)).is_some()
}

/// Flags, eight in a byte, the first in the lowest bit.
fn bits(flags: &[u8]) -> Vec<u8> {
    let byte = |eight: &[u8]| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (i, on)| byte | on << i)
    };
    flags.chunks(PACK).map(byte).collect()
}

/// Plain values, which end at these places, as a dictionary; `None` where most of them differ, or there are none.
fn dictionary(bytes: &[u8], ends: &[usize]) -> Option<Values> {
    if ends.is_empty() {
        return None;
    }
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let (mut distinct, mut places) = (Vec::new(), Vec::with_capacity(ends.len()));
    let limit = DISTINCT_MAX.min(ends.len() / 2);
    let mut begin = 0;
    for end in ends {
        let value = &bytes[begin..*end];
        begin = *end;
        let next = known.len();
        let place = match known.entry(value) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if next >= limit => return None,
            Entry::Vacant(new) => {
                distinct.extend_from_slice(value);
                *new.insert(next as u32)
            }
        };
        places.push(place);
    }
    let count = known.len();
    let width = (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1);
    let mut packed = vec![width as u8];
    packed.extend(hybrid(&places, width));
    Some(Values::Dictionary {
        distinct,
        count,
        places: packed,
    })
}

/// Runs of equal numbers as their length and the number, what lies between in so many bits each.
fn hybrid(numbers: &[u32], width: u32) -> Vec<u8> {
    let mut to = Vec::new();
    // Where what lies between begins.
    let (mut from, mut at) = (0, 0);
    while at < numbers.len() {
        let number = numbers[at];
        let run = numbers[at..].iter().take_while(|n| **n == number).count();
        // Packed numbers come in eights: those that are missing are taken from the run.
        let taken = (from..at).len().next_multiple_of(PACK) - (at - from);
        if run >= taken + PACK {
            pack(&mut to, &numbers[from..at + taken], width);
            varint(&mut to, ((run - taken) as u64) << 1);
            let bytes = number.to_le_bytes();
            to.extend_from_slice(&bytes[..width.div_ceil(8) as usize]);
            from = at + run;
        }
        at += run;
    }
    pack(&mut to, &numbers[from..], width);
    to
}

/// Numbers of so many bits, the lowest bits first; zeros fill the last eight up.
fn pack(to: &mut Vec<u8>, numbers: &[u32], width: u32) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(PACK);
    varint(to, (groups as u64) << 1 | 1);
    for eight in numbers.chunks(PACK) {
        let mut bits = 0u128;
        for (i, number) in eight.iter().enumerate() {
            bits |= u128::from(*number) << (i as u32 * width);
        }
        to.extend_from_slice(&bits.to_le_bytes()[..width as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_as_the_format_shows_it() {
        // The example of the format's own page: 0 to 7 in three bits each.
        let numbers: Vec<u32> = (0..8).collect();
        assert_eq!(
            hybrid(&numbers, 3),
            [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]
        );
    }

    #[test]
    fn a_run_gives_what_is_packed_before_it_its_eight() {
        let mut numbers = vec![1, 0, 1];
        numbers.extend([1; 20]);
        // Eight packed, then fifteen times 1.
        assert_eq!(hybrid(&numbers, 1), [3, 0b1111_1101, 30, 1]);
        assert_eq!(hybrid(&[], 1), [0u8; 0]);
    }
}
