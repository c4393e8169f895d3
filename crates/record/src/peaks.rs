//! The ceilings of a device: stated, measured, or from its link; as users write them, and as the environment of a run file stores
//! them.

use iolab_workload::units::significant;
use iolab_workload::units::{parse_per_second, parse_throughput};
use iolab_workload::{Error, Result};

use crate::environment::{Environment, Family, KEYS, PeakSource, Real};

/// The ceilings from one source; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Peaks {
    /// Throughput of reads, MB/s.
    pub read_mb_s: Option<f64>,
    /// Throughput of writes, MB/s.
    pub write_mb_s: Option<f64>,
    /// Reads per second.
    pub read_iops: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
}

impl Peaks {
    /// Reads `read=510MB/s,write=485MB/s,iops=95000`; `read_iops` and `write_iops` set them separately.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a fault, with a valid form.
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
            let rate = || {
                parse_throughput(value)
                    .ok_or_else(|| wrong(format!("'{value}' is not a throughput")))
            };
            let iops = || {
                parse_per_second(value)
                    .ok_or_else(|| wrong(format!("'{value}' is not a number of IOPS")))
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

    /// The known ones as text for people.
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

    /// Facts for the environment of a run file.
    pub fn environment(&self, source: PeakSource) -> Environment {
        let mut list = Environment::default();
        list.put(&KEYS.peak_read_mb_s.of(source), self.read_mb_s);
        list.put(&KEYS.peak_write_mb_s.of(source), self.write_mb_s);
        list.put(&KEYS.peak_read_iops.of(source), self.read_iops);
        list.put(&KEYS.peak_write_iops.of(source), self.write_iops);
        list
    }

    /// The ceilings of the target with this number, from the environment of a run file, which may come from elsewhere.
    pub fn kept_of(environment: &Environment, number: usize, source: PeakSource) -> Self {
        let of = |family: &Family<PeakSource, Real>| {
            above_zero(environment.get_of(number, &family.of(source)))
        };
        Self {
            read_mb_s: of(&KEYS.peak_read_mb_s),
            write_mb_s: of(&KEYS.peak_write_mb_s),
            read_iops: of(&KEYS.peak_read_iops),
            write_iops: of(&KEYS.peak_write_iops),
        }
    }
}

/// Treats ceilings of zero in a run file as unknown.
pub fn above_zero(number: Option<f64>) -> Option<f64> {
    number.filter(|n| *n > 0.0)
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
        let kept = peaks.environment(PeakSource::Stated);
        assert_eq!(kept.text("peak_stated_read_mb_s"), Some("510"));
        assert_eq!(Peaks::kept_of(&kept, 0, PeakSource::Stated), peaks);
        assert_eq!(
            Peaks::kept_of(&kept, 0, PeakSource::Measured),
            Peaks::default()
        );
    }

    #[test]
    fn invalid_peaks_are_refused() {
        for text in [
            "", "read", "read=", "read=-1", "read=510kB/s", "speed=3", "iops=0", "iops=inf",
            "write=NaN",
        ] {
            let error = Peaks::parse(text).expect_err(text);
            assert!(error.remedy().is_some(), "{error}");
        }
    }
}
