//! Numbers as a page writes them: `4 KiB`, `12 µs`, `27 298`, and no line that ends between a number and its unit.

/// Between a number and its unit.
const SPACE: char = '\u{a0}';
/// Between groups of three digits: narrow.
const THIN: char = '\u{202f}';
/// Units that stand close to their number where a command takes them.
const SIZES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
/// Units that keep a space, and how a page writes them.
const SPACED: [(&str, &str); 7] = [
    ("%", "%"),
    ("us", "µs"),
    ("ns", "ns"),
    ("ms", "ms"),
    ("MB/s", "MB/s"),
    ("GB/s", "GB/s"),
    ("IOPS", "IOPS"),
];
/// Digits from which a number is written in groups.
const GROUPED_MIN: usize = 5;

/// The text in the notation of pages. What a command takes stays as it is: a setting (`bs=4KiB`), a path, a word with digits.
pub(crate) fn on_page(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut page = String::with_capacity(text.len() + 8);
    for (place, word) in words.iter().enumerate() {
        let after_number = place > 0 && words[place - 1].ends_with(|c: char| c.is_ascii_digit());
        let unit = SPACED.iter().filter(|_| after_number);
        let unit = unit.clone().find_map(|(unit, shown)| {
            let rest = word.strip_prefix(unit)?;
            let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
            ends.then(|| format!("{shown}{rest}"))
        });
        if place > 0 {
            page.push(if unit.is_some() { SPACE } else { ' ' });
        }
        page.push_str(&unit.unwrap_or_else(|| number(word)));
    }
    page
}

/// A word that is a number, with or without a size's unit, and marks around it; any other word as it is.
fn number(word: &str) -> String {
    let start = word.find(|c: char| !"([+-±".contains(c)).unwrap_or(0);
    let (before, rest) = word.split_at(start);
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    if digits.is_empty() {
        return word.to_owned();
    }
    let is_end = |text: &str| text.chars().all(|c| ",;:.)]*".contains(c));
    let size = SIZES.iter().find(|unit| {
        let rest = after.strip_prefix(**unit);
        rest.is_some_and(is_end)
    });
    match size {
        Some(_) => format!("{before}{}{SPACE}{after}", grouped(digits)),
        None if is_end(after) => format!("{before}{}{after}", grouped(digits)),
        None => word.to_owned(),
    }
}

/// Long numbers in groups of three digits.
fn grouped(digits: &str) -> String {
    if digits.len() < GROUPED_MIN {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_write_numbers_in_one_way() {
        for (text, page) in [
            ("4KiB", "4\u{a0}KiB"),
            ("Random 4KiB", "Random 4\u{a0}KiB"),
            (
                "549 MB/s at bs=64MiB (within 5 %: 4MiB to 16MiB);",
                "549\u{a0}MB/s at bs=64MiB (within 5\u{a0}%: 4\u{a0}MiB to 16\u{a0}MiB);",
            ),
            ("99.9 us", "99.9\u{a0}µs"),
            ("27298 IOPS", "27\u{202f}298\u{a0}IOPS"),
            ("102280, and 1226", "102\u{202f}280, and 1226"),
            (
                "/mnt/12345678 of 2026-11-24 e12345",
                "/mnt/12345678 of 2026-11-24 e12345",
            ),
            ("816 us*", "816\u{a0}µs*"),
            ("10 used", "10 used"),
            ("12345.5", "12345.5"),
            ("", ""),
        ] {
            assert_eq!(on_page(text), page);
        }
    }
}
