//! Sorts the rows of all topics into one table at compile time.

use super::Setting;

/// Total number of rows.
pub(super) const fn count(topics: &[&[Setting]]) -> usize {
    let mut rows = 0;
    let mut topic = 0;
    while topic < topics.len() {
        rows += topics[topic].len();
        topic += 1;
    }
    rows
}

/// The rows named in `first` in that order, then the others in the order of their topics. A name without a row, or one listed
/// twice, does not compile.
pub(super) const fn in_order<const N: usize>(
    topics: &[&[Setting]],
    first: &[&str],
) -> [Setting; N] {
    let mut rows = [topics[0][0]; N];
    let mut placed = 0;
    let mut topic = 0;
    while topic < topics.len() {
        let mut row = 0;
        while row < topics[topic].len() {
            let setting = topics[topic][row];
            match position(first, setting.name) {
                Some(place) => rows[place] = setting,
                None => {
                    rows[first.len() + placed] = setting;
                    placed += 1;
                }
            }
            row += 1;
        }
        topic += 1;
    }
    assert!(first.len() + placed == N, "a name in the order has no row");
    rows
}

const fn position(names: &[&str], name: &str) -> Option<usize> {
    let mut place = 0;
    while place < names.len() {
        if equal(names[place].as_bytes(), name.as_bytes()) {
            return Some(place);
        }
        place += 1;
    }
    None
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
