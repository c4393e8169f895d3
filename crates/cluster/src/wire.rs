//! Encoding of values as messages. Numbers take as many bytes as they need (LEB128), so that small ones are
//! cheap.

/// A message being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a number, 7 bits per byte, the low ones first.
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a number of either sign; those near 0 are short.
    pub fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    /// Writes bytes.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

/// A message being read. A truncated or foreign message gives `None`, and takes no memory.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reader at the start of a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a number.
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a number of either sign.
    pub fn signed(&mut self) -> Option<i64> {
        let folded = self.number()?;
        Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// Reads the length of a list whose items take at least one byte each.
    pub fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(self.number()?).ok()?;
        (length <= self.rest.len()).then_some(length)
    }

    /// Reads a text.
    pub fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.blob()?).ok()
    }

    /// Reads bytes.
    pub fn blob(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(bytes)
    }
}

/// A value that can be written into a message and read from one.
pub trait Wire: Sized {
    /// Writes the value into a message.
    fn write(&self, to: &mut Writer);

    /// Reads a value from a message; `None` if the message has none.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
}

impl Wire for u64 {
    fn write(&self, to: &mut Writer) {
        to.number(*self);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.number()
    }
}

impl Wire for i64 {
    fn write(&self, to: &mut Writer) {
        to.signed(*self);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.signed()
    }
}

impl Wire for i32 {
    fn write(&self, to: &mut Writer) {
        to.signed(i64::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.signed()?.try_into().ok()
    }
}

impl Wire for f64 {
    fn write(&self, to: &mut Writer) {
        to.number(self.to_bits());
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.number().map(Self::from_bits)
    }
}

impl Wire for bool {
    fn write(&self, to: &mut Writer) {
        to.number(u64::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        match from.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for String {
    fn write(&self, to: &mut Writer) {
        to.text(self);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.text().map(str::to_owned)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Writer) {
        self.is_some().write(to);
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        match bool::read(from)? {
            true => T::read(from).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.write(to));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let count = from.length()?;
        (0..count).map(|_| T::read(from)).collect()
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

/// A struct whose fields are written one after another.
macro_rules! wired {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::wire::Wire for $type {
            fn write(&self, to: &mut $crate::wire::Writer) {
                $($crate::wire::Wire::write(&self.$field, to);)*
            }

            fn read(from: &mut $crate::wire::Reader<'_>) -> Option<Self> {
                Some(Self { $($field: $crate::wire::Wire::read(from)?),* })
            }
        }
    )*};
}
pub(crate) use wired;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(numbers: Vec<u64>, signed: Vec<i64>, text: String) {
            let mut to = Writer::default();
            numbers.iter().for_each(|n| to.number(*n));
            signed.iter().for_each(|n| to.signed(*n));
            to.text(&text);
            let bytes = to.into_bytes();
            let mut from = Reader::new(&bytes);
            for number in &numbers {
                prop_assert_eq!(from.number(), Some(*number));
            }
            for number in &signed {
                prop_assert_eq!(from.signed(), Some(*number));
            }
            prop_assert_eq!(from.text(), Some(text.as_str()));
            prop_assert!(from.is_at_end());
            // Truncated, its last item is missing.
            let mut from = Reader::new(&bytes[..bytes.len() - 1]);
            let all = (0..numbers.len() + signed.len()).all(|_| from.number().is_some());
            prop_assert!(!all || from.text().is_none());
        }

        #[test]
        fn noise_is_survived(bytes: Vec<u8>) {
            let mut from = Reader::new(&bytes);
            while from.text().is_some() {}
            let _ = (from.number(), from.signed(), from.length());
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_none() {
        let mut bytes = vec![0xff; 9];
        bytes.push(2);
        assert_eq!(Reader::new(&bytes).number(), None);
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes).number(), Some(u64::MAX));
    }
}
