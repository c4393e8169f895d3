//! Service levels, limits of quantities: `p99<1ms`, `iops>500`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::names::named;
use crate::units::{format_duration, parse_duration, parse_per_second, parse_throughput};
use crate::{Error, Result};

named! {
    /// The requests that a level is about.
    pub enum Requests: "kind of requests" {
        /// Reads and writes together.
        All = "requests",
        /// Reads.
        Reads = "reads",
        /// Writes, including the sync that follows one.
        Writes = "writes",
        /// Syncs that follow writes.
        Syncs = "syncs",
    }
}

/// The quantity that a level limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LevelQuantity {
    /// This quantile of the times, at least 0.5 and below 1.
    Quantile(f64),
    /// The mean time.
    Mean,
    /// The longest time.
    Max,
    /// Requests per second.
    Iops,
    /// MB/s.
    Throughput,
}

impl LevelQuantity {
    /// Whether it counts the work of a trial over its time, including the sync at its end; other quantities are times of
    /// single requests.
    pub fn is_rate(self) -> bool {
        match self {
            Self::Iops | Self::Throughput => true,
            Self::Quantile(_) | Self::Mean | Self::Max => false,
        }
    }
}

/// The limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Times must be below this.
    Below(Duration),
    /// Rates must be above this, requests/s or MB/s.
    Above(f64),
}

/// One service level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceLevel {
    /// Requests that the level is about.
    pub of: Requests,
    /// Quantity that the level limits.
    pub quantity: LevelQuantity,
    /// Bound of the quantity.
    pub bound: Bound,
}

/// A level with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// The level.
    pub level: ServiceLevel,
    /// Document that states the level, or a note that none does. Empty for the user's own levels.
    pub source: String,
    /// The wording of the source; empty if the source was not opened or gives none.
    pub wording: String,
    /// The change to make if the level does not hold.
    pub remedy: String,
}

impl Need {
    /// A level of the user's.
    pub fn of(level: ServiceLevel) -> Self {
        Self {
            level,
            source: String::new(),
            wording: String::new(),
            remedy: String::new(),
        }
    }
}

/// Most levels of a question.
pub const LEVELS_MAX: usize = 100;

/// Several levels that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceLevels(Vec<ServiceLevel>);

/// Fewest requests for a statement about the longest time: if none of them took longer, then with 95 % confidence fewer than 1 %
/// of all do (rule of three).
pub const REQUESTS_OF_MAX: u64 = 300;

/// Fewest requests for a mean, and enough for one: the standard error of the mean of exponential times is then 10 %.
const MEAN_REQUESTS_MIN: f64 = 10.0;

const MEAN_REQUESTS: f64 = 100.0;

/// Resolution of quantiles: a millionth of a percent.
const QUANTILE_STEPS: f64 = 1e8;

const HINT: &str = "write for example p99<1ms, mean<200us, max<50ms, reads.p99<2ms, writes.p50<1ms, syncs.p99.9<10ms, iops>10k or throughput>4GB/s; several with commas between";

impl ServiceLevel {
    /// Whether it limits times.
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

    /// Fewest requests of a trial for a value: with fewer, the quantile would be the longest time.
    pub fn requests_min(&self) -> f64 {
        match self.quantity {
            LevelQuantity::Quantile(q) => (1.0 / (1.0 - q)).round(),
            LevelQuantity::Mean => MEAN_REQUESTS_MIN,
            LevelQuantity::Max | LevelQuantity::Iops | LevelQuantity::Throughput => 1.0,
        }
    }

    /// Enough requests for a judgement. For a quantile `q` of independent times, `n` such that both ends of its 95 % interval
    /// exist: `q^n` at most 2.5 % (David and Nagaraja, Order Statistics, 3rd ed. (2003), 7.1). For a maximum: if
    /// none took longer then, at 95 %, fewer than 1 % of all do.
    pub fn requests_enough(&self) -> f64 {
        match self.quantity {
            LevelQuantity::Quantile(q) => (0.025_f64.ln() / q.ln()).ceil(),
            LevelQuantity::Mean => MEAN_REQUESTS,
            LevelQuantity::Max => REQUESTS_OF_MAX as f64,
            LevelQuantity::Iops | LevelQuantity::Throughput => 1.0,
        }
    }

    /// The length of a trial after which the level fails at a rate that exceeds the capacity by this share: response times grow
    /// by that share of the elapsed time. Zero for levels without times.
    pub fn time_to_notice(&self, overload: f64) -> Duration {
        let Bound::Below(limit) = self.bound else {
            return Duration::ZERO;
        };
        // The share of the trial after which half of the requests, or all but 1 %, are late.
        let part = match self.quantity {
            LevelQuantity::Quantile(q) => q,
            LevelQuantity::Mean => 0.5,
            LevelQuantity::Max | LevelQuantity::Iops | LevelQuantity::Throughput => 1.0,
        };
        Duration::try_from_secs_f64(limit.as_secs_f64() / (part * overload))
            .unwrap_or(Duration::MAX)
    }

    /// Requests and quantity: `syncs.p99`.
    pub fn subject(&self) -> String {
        let quantity = match self.quantity {
            LevelQuantity::Quantile(q) => format!("p{}", (q * QUANTILE_STEPS).round() / 1e6),
            LevelQuantity::Mean => "mean".to_owned(),
            LevelQuantity::Max => "max".to_owned(),
            LevelQuantity::Iops => "iops".to_owned(),
            LevelQuantity::Throughput => "throughput".to_owned(),
        };
        match self.of {
            Requests::All => quantity,
            of => format!("{of}.{quantity}"),
        }
    }
}

impl FromStr for ServiceLevel {
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
        let is_rate = quantity.is_rate();
        if (sign == ">") != is_rate {
            let should = if is_rate { "above (>)" } else { "below (<)" };
            return wrong(format!("'{text}': {name} has to stay {should} its bound"));
        }
        let bound = if is_rate {
            let (rate, wanted) = match quantity {
                LevelQuantity::Throughput => {
                    (parse_throughput(bound), "a throughput, such as 4GB/s")
                }
                _ => (
                    parse_per_second(bound),
                    "a number per second, such as 500 or 10k",
                ),
            };
            match rate {
                Some(rate) => Bound::Above(rate),
                None => return wrong(format!("'{bound}' in '{text}' is not {wanted}")),
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

fn quantity(name: &str) -> Option<LevelQuantity> {
    Some(match name {
        "median" => LevelQuantity::Quantile(0.5),
        "mean" | "avg" => LevelQuantity::Mean,
        "max" => LevelQuantity::Max,
        "iops" => LevelQuantity::Iops,
        "throughput" => LevelQuantity::Throughput,
        _ => {
            let percent = name.strip_prefix('p')?.parse::<f64>().ok()?;
            let q = percent / 100.0;
            // A quantile that cannot be written exactly would make an unreadable run file.
            let step = (q * QUANTILE_STEPS).round();
            // Below the median it is most likely a mistyped one: p9 for p99.
            (percent >= 50.0 && step < QUANTILE_STEPS).then_some(LevelQuantity::Quantile(q))?
        }
    })
}

impl fmt::Display for ServiceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound {
            Bound::Below(time) => f.pad(&format!("{}<{}", self.subject(), format_duration(time))),
            Bound::Above(rate) => {
                let is_rate_of_bytes = self.quantity == LevelQuantity::Throughput;
                let unit = if is_rate_of_bytes { "MB/s" } else { "" };
                f.pad(&format!("{}>{rate}{unit}", self.subject()))
            }
        }
    }
}

impl ServiceLevels {
    /// All levels.
    pub fn all(&self) -> &[ServiceLevel] {
        &self.0
    }
}

impl FromStr for ServiceLevels {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let levels: Vec<ServiceLevel> = text.split(',').map(str::parse).collect::<Result<_>>()?;
        if levels.len() > LEVELS_MAX {
            return Err(Error::usage(format!("{} levels", levels.len()))
                .hint(format!("give at most {LEVELS_MAX}")));
        }
        for (number, level) in levels.iter().enumerate() {
            if levels[..number].contains(level) {
                return Err(Error::usage(format!("the level {level} is given twice"))
                    .hint("leave one of them out"));
            }
        }
        Ok(Self(levels))
    }
}

impl FromIterator<ServiceLevel> for ServiceLevels {
    fn from_iter<I: IntoIterator<Item = ServiceLevel>>(levels: I) -> Self {
        Self(levels.into_iter().collect())
    }
}

impl fmt::Display for ServiceLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&texts.join(","))
    }
}
