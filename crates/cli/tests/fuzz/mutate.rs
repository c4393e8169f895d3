//! Makes bad input out of good.

/// Numbers at which something tends to overflow.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e308",
    "1e999",
    "-0.0",
    "nan",
    "0x10",
];

/// Longest input, bytes.
const LENGTH_MAX: usize = 64 << 10;

/// A source of damage (SplitMix64).
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// One of the good inputs with some damage; `words` are what matters in this kind of input.
    pub(crate) fn damaged(&mut self, good: &[&[u8]], words: &[&str]) -> Vec<u8> {
        let mut bytes = self.one_of(good).to_vec();
        for _ in 0..=self.below(6) {
            self.damage(&mut bytes, good, words);
        }
        bytes.truncate(LENGTH_MAX);
        bytes
    }

    /// The damaged input as text; invalid UTF-8 is replaced.
    pub(crate) fn damaged_text(&mut self, good: &[&str], words: &[&str]) -> String {
        let good: Vec<&[u8]> = good.iter().map(|text| text.as_bytes()).collect();
        String::from_utf8_lossy(&self.damaged(&good, words)).into_owned()
    }

    fn damage(&mut self, bytes: &mut Vec<u8>, good: &[&[u8]], words: &[&str]) {
        let (from, to) = self.range(bytes.len());
        match self.below(9) {
            0 if from < bytes.len() => bytes[from] ^= 1 << self.below(8),
            1 if from < bytes.len() => bytes[from] = self.next() as u8,
            2 => drop(bytes.drain(from..to)),
            3 => bytes.truncate(from),
            4 => {
                let times = 1 << self.below(8);
                let part = bytes[from..to].repeat(times);
                bytes.splice(from..from, part);
            }
            5 => {
                let other = self.one_of(good);
                let (start, end) = self.range(other.len());
                bytes.splice(from..to, other[start..end].iter().copied());
            }
            6 => self.replace_number(bytes, from),
            _ => {
                let word = match (self.below(3), words) {
                    (0, _) | (_, []) => self.one_of(&NUMBERS),
                    _ => self.one_of(words),
                };
                bytes.splice(from..to, word.bytes());
            }
        }
    }

    /// A range, mostly a short one.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length + 1);
        let longest = 1 << self.below(10);
        (from, (from + self.below(longest)).min(length))
    }

    /// Replaces the first number at or after a place.
    fn replace_number(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let Some(start) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else {
            return;
        };
        let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit());
        let end = start + digits.count();
        bytes.splice(start..end, self.one_of(&NUMBERS).bytes());
    }
}
