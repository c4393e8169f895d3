//! The environment of a run, as its run file stores it: facts by key.

mod keys;

use std::collections::HashMap;

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
}
