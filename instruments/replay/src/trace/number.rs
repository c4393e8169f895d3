//! Numbers of traces: decimal fractions without rounding, and units of time.

use clap::ValueEnum;

/// Parts of a unit that a stamp distinguishes: nine decimals.
pub(super) const SCALE: u128 = 1_000_000_000;

/// Unit of time stamps, the longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// 100 nanoseconds, since 1601 if stamps are dates (FILETIME)
    #[value(name = "100ns")]
    Filetime,
    /// Nanoseconds
    Ns,
}

impl TimeUnit {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "seconds",
            Self::Ms => "milliseconds",
            Self::Us => "microseconds",
            Self::Filetime => "units of 100 ns",
            Self::Ns => "nanoseconds",
        }
    }

    /// Its name as an argument.
    pub fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its length, ns.
    pub(super) fn length_ns(self) -> u128 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Filetime => 100,
            Self::Ns => 1,
        }
    }

    /// Nanoseconds of a number of [`decimal`].
    pub(super) fn ns(self, number: u128) -> u128 {
        number.saturating_mul(self.length_ns()) / SCALE
    }
}

/// A number without sign, times [`SCALE`]; decimals beyond nine are cut.
pub(super) fn decimal(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || !digits(whole) || !digits(part) {
        return None;
    }
    let mut decimals = 0;
    for place in 0..9 {
        let digit = part.as_bytes().get(place).map_or(0, |digit| digit - b'0');
        decimals = decimals * 10 + u128::from(digit);
    }
    Some(whole.parse::<u128>().ok()? * SCALE + decimals)
}
