//! The compact protocol of Apache Thrift, as far as the headers and the footer of a Parquet file take it.
//!
//! Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct that is being written: fields in ascending order of their numbers.
pub(super) struct Struct<'a> {
    to: &'a mut Vec<u8>,
    last: u8,
}

/// Writes a struct.
pub(super) fn write(to: &mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
    fields(&mut Struct { to, last: 0 });
    to.push(0);
}

/// Bytes of 7 bits each, the lowest first.
pub(super) fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Numbers near zero, of either sign, in few bytes.
fn zigzag(to: &mut Vec<u8>, value: i64) {
    varint(to, ((value << 1) ^ (value >> 63)) as u64);
}

fn binary(to: &mut Vec<u8>, text: &str) {
    varint(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

impl Struct<'_> {
    /// Numbers of fields are below 16 in Parquet, so that the difference of two fits into half a byte.
    fn field(&mut self, number: u8, kind: u8) {
        self.to.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    /// A 32-bit number, or a value of an enum.
    pub(super) fn i32(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        zigzag(self.to, value.into());
    }

    /// A 64-bit number.
    pub(super) fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        zigzag(self.to, value);
    }

    /// A text.
    pub(super) fn text(&mut self, number: u8, value: &str) {
        self.field(number, BINARY);
        binary(self.to, value);
    }

    /// A struct within.
    pub(super) fn within(&mut self, number: u8, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(number, STRUCT);
        write(self.to, fields);
    }

    fn list(&mut self, number: u8, kind: u8, count: usize) {
        self.field(number, LIST);
        match count {
            0..15 => self.to.push((count as u8) << 4 | kind),
            _ => {
                self.to.push(0xf0 | kind);
                varint(self.to, count as u64);
            }
        }
    }

    /// A list of values of an enum.
    pub(super) fn numbers(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values.len());
        for value in values {
            zigzag(self.to, (*value).into());
        }
    }

    /// A list of one text.
    pub(super) fn one_text(&mut self, number: u8, value: &str) {
        self.list(number, BINARY, 1);
        binary(self.to, value);
    }

    /// A list of structs, each written from one of `values`.
    pub(super) fn structs<T>(
        &mut self,
        number: u8,
        values: &[T],
        fields: impl Fn(&T, &mut Struct<'_>),
    ) {
        self.list(number, STRUCT, values.len());
        for value in values {
            write(self.to, |own| fields(value, own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let of = |value: i64| {
            let mut to = Vec::new();
            zigzag(&mut to, value);
            to
        };
        // The examples of the protocol's own page.
        assert_eq!(of(0), [0]);
        assert_eq!(of(-1), [1]);
        assert_eq!(of(1), [2]);
        assert_eq!(of(-2), [3]);
        assert_eq!(of(64), [0x80, 1]);
        assert_eq!(
            of(i64::MIN),
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]
        );
    }
}
