//! The environment of a run, as its run file stores it: facts by key, with the ceilings of its devices.

mod keys;

use std::collections::HashMap;

use iolab_workload::units::{parse_per_second, parse_throughput, significant};
use iolab_workload::{Error, Result};

pub use keys::{
    ALL, Bit, Bytes, Cache, Family, Flag, Hex, Holds, KEYS, Key, KeyEntry, Keys, PeakSource, Real,
    TargetFact, Tenths, Text, ValueType, Whole, WholeText,
};

/// Facts by key, in the order of the output. [`KEYS`] lists the keys; facts of other versions under other keys are kept too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    facts: Vec<(String, String)>,
    /// Index of the first fact of each key. A map, since a foreign file may have any number of facts.
    places: HashMap<String, usize>,
}

impl Environment {
    /// The value of a key; `None` if it is missing or invalid.
    pub fn get<K: ValueType>(&self, key: &Key<K>) -> Option<K::Value> {
        K::read(self.text(key.name())?)
    }

    /// The text of a fact, under any name.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.facts.get(*self.places.get(name)?)?;
        Some(value)
    }

    /// Adds a fact, unless the value is `None`.
    pub fn put<K: ValueType>(&mut self, key: &Key<K>, value: impl Into<Option<K::Value>>) {
        let text = value.into().map(|value| K::write(&value));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.push(key.name().to_owned(), text);
        }
    }

    fn push(&mut self, key: String, value: String) {
        let place = self.facts.len();
        self.places.entry(key.clone()).or_insert(place);
        self.facts.push((key, value));
    }

    /// Adds the facts of a further target.
    pub fn put_target(&mut self, number: usize, facts: Environment) {
        self.extend(facts.into_iter().map(|(key, value)| {
            let key = KEYS.of_further_target.of(TargetFact { number, key });
            (key.name().to_owned(), value)
        }));
    }

    /// The facts that apply to a further target: its own, and the facts of the machine.
    #[must_use]
    pub fn of_target(&self, number: usize) -> Self {
        let own = KEYS.of_further_target.of(TargetFact {
            number,
            key: String::new(),
        });
        let facts = self.facts.iter().filter_map(|(key, value)| {
            let key = match key.strip_prefix(own.name()) {
                Some(key) => key,
                None if is_of_target(key) => return None,
                None => key,
            };
            Some((key.to_owned(), value.clone()))
        });
        facts.collect()
    }

    /// The value of a key that applies to a target; see [`Environment::of_target`].
    pub fn get_of<K: ValueType>(&self, number: usize, key: &Key<K>) -> Option<K::Value> {
        if number == 0 {
            return self.get(key);
        }
        let own = KEYS.of_further_target.of(TargetFact {
            number,
            key: key.name().to_owned(),
        });
        let machine = || self.text(key.name()).filter(|_| !is_of_target(key.name()));
        K::read(self.text(own.name()).or_else(machine)?)
    }

    /// The facts that apply to all targets.
    #[must_use]
    pub fn of_machine(&self) -> Self {
        let facts = self.facts.iter().filter(|(key, _)| !is_of_target(key));
        facts.cloned().collect()
    }

    /// Names and texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// Whether a key describes the first target instead of the machine.
fn is_of_target(key: &str) -> bool {
    keys::OF_TARGET.iter().any(|start| key.starts_with(start))
}

/// From names and texts, as a run file stores them.
impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(facts: I) -> Self {
        let mut all = Self::default();
        all.extend(facts);
        all
    }
}

impl IntoIterator for Environment {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.facts.into_iter()
    }
}

impl Extend<(String, String)> for Environment {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, facts: I) {
        facts
            .into_iter()
            .for_each(|(key, value)| self.push(key, value));
    }
}

/// The differences of two environments: key, value in `a`, value in `b`; in the order of `a`, then of `b`. Leaves out facts that
/// change by themselves, such as the uptime.
pub fn differences(
    a: &Environment,
    b: &Environment,
) -> Vec<(String, Option<String>, Option<String>)> {
    let value = |list: &Environment, key: &str| list.text(key).map(str::to_owned);
    let only_b = b.iter().filter(|(key, _)| a.text(key).is_none());
    a.iter()
        .chain(only_b)
        .filter(|(key, _)| !keys::is_passing(key))
        .map(|(key, _)| (key.to_owned(), value(a, key), value(b, key)))
        .filter(|(_, a, b)| a != b)
        .collect()
}

/// The ceilings of a device from one source: stated, measured, or from its link. They are read as users write them, and as the
/// environment of a run file stores them; `None` if unknown.
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
    fn differences_name_missing_facts_and_skip_passing_ones() {
        let list = |pairs: &[(&str, &str)]| -> Environment {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect()
        };
        let a = list(&[
            ("kernel", "6.1"),
            ("uptime_s", "5"),
            ("gone", "x"),
            ("same", "y"),
        ]);
        let b = list(&[
            ("same", "y"),
            ("new", "z"),
            ("kernel", "6.2"),
            ("uptime_s", "9"),
        ]);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            differences(&a, &b),
            [
                ("kernel".to_owned(), some("6.1"), some("6.2")),
                ("gone".to_owned(), some("x"), None),
                ("new".to_owned(), None, some("z")),
            ]
        );
        assert!(differences(&a, &a).is_empty());
    }

    #[test]
    fn facts_that_were_put_are_found() {
        let mut list = Environment::default();
        list.put(&KEYS.memory_bytes, 17_u64 << 30);
        list.put(&KEYS.cpu_model, " \n".to_owned());
        list.put(&KEYS.device_model, None);
        assert_eq!(list.get(&KEYS.memory_bytes), Some(17 << 30));
        assert_eq!(list.iter().count(), 1);
    }

    #[test]
    fn a_further_target_has_own_and_machine_facts() {
        let mut list = Environment::default();
        list.put(&KEYS.cpu_model, "X".to_owned());
        list.put(&KEYS.device, "sda".to_owned());
        list.put(&KEYS.device_link_mb_s, 600.0);
        let mut own = Environment::default();
        own.put(&KEYS.device, "sdb".to_owned());
        list.put_target(1, own);
        let further = list.of_target(1);
        assert_eq!(further.get(&KEYS.device).as_deref(), Some("sdb"));
        assert_eq!(further.get(&KEYS.cpu_model).as_deref(), Some("X"));
        assert_eq!(further.get(&KEYS.device_link_mb_s), None);
        for number in 0..3 {
            let of = match number {
                0 => list.clone(),
                _ => list.of_target(number),
            };
            assert_eq!(list.get_of(number, &KEYS.device), of.get(&KEYS.device));
            let model = list.get_of(number, &KEYS.cpu_model);
            assert_eq!(model, of.get(&KEYS.cpu_model));
        }
        assert_eq!(list.get(&KEYS.device).as_deref(), Some("sda"));
    }

    #[test]
    fn keys_of_other_versions_stay_as_they_are() {
        let facts = [("flux_capacitor_gw", "1.21"), ("memory_bytes", "much")];
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let list: Environment = facts.clone().into_iter().collect();
        assert_eq!(list.text("flux_capacitor_gw"), Some("1.21"));
        assert_eq!(list.get(&KEYS.memory_bytes), None);
        assert!(list.into_iter().eq(facts));
    }

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
