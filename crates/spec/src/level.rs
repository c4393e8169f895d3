//! Service levels: `p99<1ms`, `syncs.p99.9<10ms`, `iops>500`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::named::named;
use crate::units::{format_duration, parse_duration};

named! {
    /// The requests that a level is of.
    pub enum Requests: "kind of requests" {
        /// Reads and writes together.
        All = "requests",
        /// Reads.
        Reads = "reads",
        /// Writes, with the sync that follows one.
        Writes = "writes",
        /// Syncs that follow writes.
        Syncs = "syncs",
    }
}

/// What a level bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// This quantile of the times, between 0 and 1.
    Quantile(f64),
    /// The mean time.
    Mean,
    /// The greatest time.
    Max,
    /// Requests per second.
    Iops,
    /// MB/s.
    Throughput,
}

/// Its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Times stay below this.
    Below(Duration),
    /// A rate stays above this, in requests/s or MB/s.
    Above(f64),
}

/// One service level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The requests that it is of.
    pub of: Requests,
    /// What it bounds.
    pub quantity: Quantity,
    /// Its bound.
    pub bound: Bound,
}

/// Several levels that have to hold together.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels(Vec<Level>);

/// Quantiles are told apart to a millionth of a percent.
const QUANTILE_STEPS: f64 = 1e8;

const HINT: &str = "write for example p99<1ms, mean<200us, max<50ms, reads.p99<2ms, writes.p50<1ms, syncs.p99.9<10ms, iops>500 or throughput>100; several with commas between";

impl Level {
    /// Whether it bounds times.
    pub fn is_of_time(&self) -> bool {
        matches!(self.bound, Bound::Below(_))
    }

    /// The bound in ns, requests/s or MB/s.
    pub fn limit(&self) -> f64 {
        match self.bound {
            Bound::Below(time) => time.as_nanos() as f64,
            Bound::Above(rate) => rate,
        }
    }

    /// The share of the requests that may take longer; `None` where it is no quantile of times.
    pub fn allowance(&self) -> Option<f64> {
        match self.quantity {
            Quantity::Quantile(q) => Some(1.0 - q),
            _ => None,
        }
    }

    /// What it bounds: `syncs.p99`.
    pub fn subject(&self) -> String {
        let quantity = match self.quantity {
            Quantity::Quantile(q) => format!("p{}", (q * QUANTILE_STEPS).round() / 1e6),
            Quantity::Mean => "mean".to_owned(),
            Quantity::Max => "max".to_owned(),
            Quantity::Iops => "iops".to_owned(),
            Quantity::Throughput => "throughput".to_owned(),
        };
        match self.of {
            Requests::All => quantity,
            of => format!("{of}.{quantity}"),
        }
    }
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: String| Err(Error::usage(what).hint(HINT));
        let at = text.find(['<', '>']);
        let Some((subject, rest)) = at.map(|at| text.split_at(at)) else {
            return wrong(format!("'{text}' is not a level: it has no < or >"));
        };
        let (sign, rest) = rest.split_at(1);
        let bound = rest.strip_prefix('=').unwrap_or(rest).trim();
        let subject = subject.trim();
        let (of, name) = match subject.split_once('.') {
            Some((operation, name)) if !name.starts_with(|c: char| c.is_ascii_digit()) => {
                (Some(operation), name)
            }
            _ => (None, subject),
        };
        let of = match of {
            None => Requests::All,
            Some("read" | "reads") => Requests::Reads,
            Some("write" | "writes") => Requests::Writes,
            Some("sync" | "syncs") => Requests::Syncs,
            Some(other) => {
                return wrong(format!(
                    "'{other}' in '{text}' is not one of reads, writes, syncs"
                ));
            }
        };
        let Some(quantity) = quantity(name) else {
            return wrong(format!("'{name}' in '{text}' is not a quantity"));
        };
        let is_rate = matches!(quantity, Quantity::Iops | Quantity::Throughput);
        if (sign == ">") != is_rate {
            let should = if is_rate { "above (>)" } else { "below (<)" };
            return wrong(format!("'{text}': {name} has to stay {should} its bound"));
        }
        let bound = if is_rate {
            let number = bound
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite() && *n > 0.0);
            match number {
                Some(number) => Bound::Above(number),
                None => return wrong(format!("'{bound}' in '{text}' is not a number above 0")),
            }
        } else {
            match parse_duration(bound) {
                Ok(time) if !time.is_zero() => Bound::Below(time),
                Ok(_) => return wrong(format!("the bound of '{text}' is 0")),
                Err(error) => return Err(error.within(text)),
            }
        };
        Ok(Self {
            of,
            quantity,
            bound,
        })
    }
}

fn quantity(name: &str) -> Option<Quantity> {
    Some(match name {
        "median" => Quantity::Quantile(0.5),
        "mean" | "avg" => Quantity::Mean,
        "max" => Quantity::Max,
        "iops" => Quantity::Iops,
        "throughput" => Quantity::Throughput,
        _ => {
            let percent = name.strip_prefix('p')?.parse::<f64>().ok()?;
            let q = percent / 100.0;
            // One that cannot be written again would make a run file that cannot be read.
            let step = (q * QUANTILE_STEPS).round();
            (step > 0.0 && step < QUANTILE_STEPS).then_some(Quantity::Quantile(q))?
        }
    })
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound {
            Bound::Below(time) => f.pad(&format!("{}<{}", self.subject(), format_duration(time))),
            Bound::Above(rate) => f.pad(&format!("{}>{rate}", self.subject())),
        }
    }
}

impl Levels {
    /// Fewest requests whose quantiles say something of these levels: with fewer, a quantile is the greatest of them.
    pub fn requests_min(&self) -> u64 {
        let of = |level: &Level| match level.allowance() {
            Some(allowance) => (1.0 / allowance).round() as u64,
            None => 1,
        };
        self.0.iter().map(of).max().unwrap_or(1)
    }

    /// These levels.
    pub fn all(&self) -> &[Level] {
        &self.0
    }
}

impl FromStr for Levels {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let levels: Vec<Level> = text.split(',').map(str::parse).collect::<Result<_>>()?;
        for (number, level) in levels.iter().enumerate() {
            if levels[..number].contains(level) {
                return Err(Error::usage(format!("the level {level} is given twice"))
                    .hint("leave one of them out"));
            }
        }
        Ok(Self(levels))
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_written() {
        for (text, written) in [
            ("p99<1ms", "p99<1ms"),
            ("p99.9 <= 5ms", "p99.9<5ms"),
            ("median<200us", "p50<200us"),
            ("syncs.p99.9<10ms", "syncs.p99.9<10ms"),
            ("read.mean<0.5", "reads.mean<500ms"),
            ("writes.max<2s", "writes.max<2s"),
            ("iops>500", "iops>500"),
            ("writes.throughput>100", "writes.throughput>100"),
            ("p99.99<1s", "p99.99<1s"),
            ("p99.999999<1s", "p99.999999<1s"),
        ] {
            let level: Level = text.parse().expect(text);
            assert_eq!(level.to_string(), written);
            assert_eq!(written.parse::<Level>().expect(written), level);
        }
        let both: Levels = "p50<200us,p99.9<5ms".parse().expect("two");
        assert_eq!(both.all().len(), 2);
        assert_eq!(both.to_string(), "p50<200us,p99.9<5ms");
        assert_eq!(both.requests_min(), 1000);
    }

    #[test]
    fn what_is_no_level_is_refused_with_what_would_be_one() {
        for text in [
            "",
            "p99",
            "p99=1ms",
            "p0<1ms",
            "p100<1ms",
            "p99.9999999<1ms",
            "p0.0000001<1ms",
            "p99<0",
            "p99<fast",
            "p99>1ms",
            "iops<500",
            "iops>-1",
            "iops>nan",
            "trims.p99<1ms",
            "q99<1ms",
            "p99<1ms,",
            "p99<1ms,p99<1ms",
            ".p99<1ms",
        ] {
            let error = text.parse::<Levels>().expect_err(text);
            assert!(error.remedy().is_some(), "{text}: {error}");
        }
    }
}
