//! Ceilings: what a device is said, was measured, or is connected to give; and how near to it a cell comes.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::clock::Clock;
use iolab_engine::spec::{CacheState, Limit, Pattern, TrialSpec};
use iolab_engine::target::Target;
use iolab_engine::{Error, Result, trial};

use crate::analysis::{CellAnalysis, Flag};
use crate::environment::{Environment, Family, KEYS, Real};
use crate::quantity::{format_percent, significant};
use crate::record::ServedBy;

/// Length of one probe.
const PROBE: Duration = Duration::from_millis(300);
/// A step of concurrency has gained when it gave this factor.
const GAIN: f64 = 1.05;
/// Steps in a row without a gain after which no other is tried: one alone may be a neighbour's doing.
const STEPS_WITHOUT_GAIN: u32 = 2;
/// Most requests at once that are tried.
const AT_ONCE_MAX: u32 = 128;
/// How far a cell may lie above a ceiling that was itself measured, by chance.
const MEASURED_SLACK: f64 = 1.05;

/// Where a ceiling is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The user's `--peak`.
    Stated,
    /// A probe before the run (`--peak measure`).
    Measured,
    /// The speed of the link that the device is connected by.
    Link,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stated => "stated",
            Self::Measured => "measured",
            Self::Link => "link",
        })
    }
}

/// The ceilings of one source; what is not known is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Peaks {
    /// Of reads, MB/s.
    pub read_mb_s: Option<f64>,
    /// Of writes, MB/s.
    pub write_mb_s: Option<f64>,
    /// Of reads, requests per second.
    pub read_iops: Option<f64>,
    /// Of writes, requests per second.
    pub write_iops: Option<f64>,
}

impl Peaks {
    /// Reads `read=510MB/s,write=485MB/s,iops=95000`; `read_iops` and `write_iops` say the two apart.
    ///
    /// # Errors
    /// Of kind usage: what is wrong, and how it is written.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: String| {
            Error::usage(format!("--peak {text}: {what}")).hint(
                "write --peak read=510MB/s,write=485MB/s,iops=95000 (or read_iops, write_iops), or --peak measure",
            )
        };
        let mut peaks = Self::default();
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| wrong(format!("there is no '=' in '{part}'")))?;
            let (name, value) = (name.trim(), value.trim());
            let rate = || mb_s(value).ok_or_else(|| wrong(format!("'{value}' is no throughput")));
            let iops = || {
                per_second(value).ok_or_else(|| wrong(format!("'{value}' is no number of IOPS")))
            };
            match name {
                "read" => peaks.read_mb_s = Some(rate()?),
                "write" => peaks.write_mb_s = Some(rate()?),
                "read_iops" => peaks.read_iops = Some(iops()?),
                "write_iops" => peaks.write_iops = Some(iops()?),
                "iops" => (peaks.read_iops, peaks.write_iops) = (Some(iops()?), Some(iops()?)),
                _ => return Err(wrong(format!("'{name}' has no ceiling"))),
            }
        }
        Ok(peaks)
    }

    /// Those that are known, for people.
    pub fn words(&self) -> String {
        let all = [
            ("read", self.read_mb_s, "MB/s"),
            ("write", self.write_mb_s, "MB/s"),
            ("read", self.read_iops, "IOPS"),
            ("write", self.write_iops, "IOPS"),
        ];
        let words = all.into_iter().filter_map(|(direction, value, unit)| {
            Some(format!("{direction} {} {unit}", significant(value?)))
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// What the environment of a run file keeps of them.
    pub fn environment(&self, source: Source) -> Environment {
        let mut list = Environment::default();
        list.put(&KEYS.peak_read_mb_s.of(source), self.read_mb_s);
        list.put(&KEYS.peak_write_mb_s.of(source), self.write_mb_s);
        list.put(&KEYS.peak_read_iops.of(source), self.read_iops);
        list.put(&KEYS.peak_write_iops.of(source), self.write_iops);
        list
    }

    /// From the environment of a run file, which may be a stranger's.
    fn kept(environment: &Environment, source: Source) -> Self {
        let of = |family: &Family<Source, Real>| above_zero(environment.get(&family.of(source)));
        Self {
            read_mb_s: of(&KEYS.peak_read_mb_s),
            write_mb_s: of(&KEYS.peak_write_mb_s),
            read_iops: of(&KEYS.peak_read_iops),
            write_iops: of(&KEYS.peak_write_iops),
        }
    }
}

/// No ceiling is zero, whatever a run file says.
fn above_zero(number: Option<f64>) -> Option<f64> {
    number.filter(|n| *n > 0.0)
}

fn positive(number: &str, scale: f64) -> Option<f64> {
    let value = number.trim_end().parse::<f64>().ok()? * scale;
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// `510MB/s`, `1.2GB/s`, or a bare number in MB/s.
fn mb_s(text: &str) -> Option<f64> {
    for (unit, scale) in [("GB/s", 1e3), ("MB/s", 1.0)] {
        if let Some(number) = text.strip_suffix(unit) {
            return positive(number, scale);
        }
    }
    positive(text, 1.0)
}

/// `95000` or `95k`.
fn per_second(text: &str) -> Option<f64> {
    match text.strip_suffix(['k', 'K']) {
        Some(number) => positive(number, 1e3),
        None => positive(text, 1.0),
    }
}

/// Finds the ceilings of a target by short probes: large sequential and small random requests, with twice as many threads
/// until that has twice gained nothing. Writes only where `writes` says that the run will write too.
///
/// # Errors
/// When a probe cannot be made, or `stop` is raised meanwhile.
pub fn measure(target: &Target, clock: &Clock, stop: &AtomicBool, writes: bool) -> Result<Peaks> {
    let best = |read_percent: u8, pattern: Pattern, bs: u64| -> Result<Option<f64>> {
        let mut best: f64 = 0.0;
        let mut threads = 1;
        let mut without_gain = 0;
        while without_gain < STEPS_WITHOUT_GAIN
            && threads <= AT_ONCE_MAX
            && u64::from(threads) * bs <= target.size()
        {
            let spec = TrialSpec {
                pattern,
                bs,
                region: target.size() / bs * bs,
                threads,
                read_percent,
                limit: Limit {
                    time: Some(PROBE),
                    ..Limit::default()
                },
                cache: match target.direct_alignment() {
                    Ok(_) => CacheState::Direct,
                    Err(_) => CacheState::Cold,
                },
                ..TrialSpec::default()
            };
            let outcome = trial::run(&spec, target, clock, stop)?;
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let rate = outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64;
            without_gain = if rate < best * GAIN {
                without_gain + 1
            } else {
                0
            };
            best = rate.max(best);
            threads *= 2;
        }
        Ok((best > 0.0).then_some(best))
    };
    const LARGE: u64 = 1 << 20;
    const SMALL: u64 = 4096;
    let mb_s = |rate: Option<f64>| rate.map(|rate| rate * LARGE as f64 / 1e6);
    let write = |pattern, bs| {
        if writes {
            best(0, pattern, bs)
        } else {
            Ok(None)
        }
    };
    Ok(Peaks {
        read_mb_s: mb_s(best(100, Pattern::Seq, LARGE)?),
        read_iops: best(100, Pattern::Rand, SMALL)?,
        write_mb_s: mb_s(write(Pattern::Seq, LARGE)?),
        write_iops: write(Pattern::Rand, SMALL)?,
    })
}

/// How near a cell comes to the ceiling that binds it first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// The ceiling, in MB/s or requests per second.
    pub ceiling: f64,
    /// Whether it is one of requests per second.
    pub is_iops: bool,
    /// Where it is from.
    pub source: Source,
    /// Median of the cell over the ceiling.
    pub share: f64,
    /// Why it is above 1, where the evidence has a reason.
    pub cause: Option<&'static str>,
}

impl Efficiency {
    /// Whether the cell lies above its ceiling, and nothing explains it.
    pub fn exceeds(&self) -> bool {
        self.share > 1.0 && self.cause.is_none()
    }

    /// `510 MB/s stated`.
    pub fn ceiling_text(&self) -> String {
        let unit = if self.is_iops { "IOPS" } else { "MB/s" };
        format!("{} {unit} {}", significant(self.ceiling), self.source)
    }

    /// `87 %`; above 100 % never without its cause.
    pub fn share_text(&self) -> String {
        let share = format_percent(self.share);
        match self.cause {
            _ if self.share <= 1.0 => share,
            Some(cause) => format!("{share} ({cause})"),
            None => format!("{share} ({})", Flag::ExceedsCeiling),
        }
    }
}

/// All ceilings of a run.
pub(crate) struct Ceilings {
    by_source: [(Source, Peaks); 3],
    is_virtual: bool,
}

impl Ceilings {
    /// From the environment that a run file keeps.
    pub(crate) fn of(environment: &Environment) -> Self {
        let link = above_zero(environment.get(&KEYS.device_link_mb_s));
        let of_link = Peaks {
            read_mb_s: link,
            write_mb_s: link,
            ..Peaks::default()
        };
        let kept = |source| (source, Peaks::kept(environment, source));
        Self {
            by_source: [
                kept(Source::Stated),
                kept(Source::Measured),
                (Source::Link, of_link),
            ],
            is_virtual: environment.get(&KEYS.machine_is_virtual) == Some(true),
        }
    }

    /// Of a cell that only reads or only writes: the first source that has a ceiling for it, and of its two ceilings the one
    /// that binds first.
    pub(crate) fn efficiency(&self, cell: &CellAnalysis) -> Option<Efficiency> {
        let (mb_s, iops) = (cell.throughput?.median, cell.iops?.median);
        self.by_source.iter().find_map(|(source, peaks)| {
            let (most_mb_s, most_iops) = match cell.cell.trial().read_percent {
                100 => (peaks.read_mb_s, peaks.read_iops),
                0 => (peaks.write_mb_s, peaks.write_iops),
                _ => return None,
            };
            let of = |value: f64, ceiling: Option<f64>, is_iops| {
                let ceiling = ceiling?;
                let share = value / ceiling;
                Some(Efficiency {
                    ceiling,
                    is_iops,
                    source: *source,
                    share,
                    cause: self.cause(cell, share, *source),
                })
            };
            [of(mb_s, most_mb_s, false), of(iops, most_iops, true)]
                .into_iter()
                .flatten()
                .max_by(|a, b| a.share.total_cmp(&b.share))
        })
    }

    fn cause(&self, cell: &CellAnalysis, share: f64, source: Source) -> Option<&'static str> {
        if share <= 1.0 {
            return None;
        }
        let any = |verdict| cell.served.as_ref().is_some_and(|s| s.any(verdict));
        if any(ServedBy::NotStorage) {
            Some("not storage")
        } else if any(ServedBy::Hole) {
            Some("holes")
        } else if any(ServedBy::PageCache) || any(ServedBy::Mixed) {
            Some("page cache")
        } else if any(ServedBy::Unknown) {
            Some("may not be the device")
        } else if source == Source::Measured && share <= MEASURED_SLACK {
            Some("within the probe's noise")
        } else if self.is_virtual {
            Some("host cache suspected")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_read_and_kept() {
        let peaks = Peaks::parse("read=510MB/s, write=0.485GB/s,iops=95k").expect("valid");
        assert_eq!(peaks.read_mb_s, Some(510.0));
        assert_eq!(peaks.write_mb_s, Some(485.0));
        assert_eq!(
            (peaks.read_iops, peaks.write_iops),
            (Some(95_000.0), Some(95_000.0))
        );
        assert_eq!(
            peaks.words(),
            "read 510 MB/s, write 485 MB/s, read 95000 IOPS, write 95000 IOPS"
        );
        let kept = peaks.environment(Source::Stated);
        assert_eq!(kept.text("peak_stated_read_mb_s"), Some("510"));
        assert_eq!(Peaks::kept(&kept, Source::Stated), peaks);
        assert_eq!(Peaks::kept(&kept, Source::Measured), Peaks::default());
    }

    #[test]
    fn what_is_no_peak_is_told() {
        for text in [
            "",
            "read",
            "read=",
            "read=-1",
            "read=510kB/s",
            "speed=3",
            "iops=0",
            "iops=inf",
            "write=NaN",
        ] {
            let error = Peaks::parse(text).expect_err(text);
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn a_share_above_one_is_never_bare() {
        let of = |share, cause| Efficiency {
            ceiling: 510.0,
            is_iops: false,
            source: Source::Stated,
            share,
            cause,
        };
        assert_eq!(of(0.87, None).share_text(), "87 %");
        assert_eq!(
            of(1.39, Some("page cache")).share_text(),
            "139 % (page cache)"
        );
        assert_eq!(of(1.39, None).share_text(), "139 % (exceeds ceiling)");
        assert!(of(1.39, None).exceeds() && !of(1.0, None).exceeds());
        assert_eq!(of(0.5, None).ceiling_text(), "510 MB/s stated");
    }
}
