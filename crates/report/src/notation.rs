//! One notation of numbers with units: `4 KiB`, `12 µs`, on pages `27 298` too. No line ends between a number
//! and its unit. Arguments of commands stay as they are typed: `bs=4KiB`, `--time 30s`.

use iolab_figure::labels::{THIN, grouped};
use iolab_workload::escape_control::escape_control;

/// Separator of a number and its unit, at which no line ends.
const SPACE: char = '\u{a0}';
/// Units that commands accept without a space after the number.
const TYPED: [&str; 11] = [
    "KiB", "MiB", "GiB", "TiB", "PiB", "ns", "us", "ms", "s", "min", "h",
];
/// Units after a space.
const SPACED: [&str; 18] = [
    "%", "ns", "us", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "MB", "GB", "TB",
    "MB/s", "GB/s", "IOPS",
];

/// Text from outside without control characters.
pub(crate) fn clean(text: &str) -> String {
    escape_control(text).into_owned()
}

/// The text in the notation of pages.
pub(crate) fn on_page(text: &str) -> String {
    written(text, Some(THIN))
}

/// The text in the notation of pages, with spaces that can be copied.
pub(crate) fn on_screen(text: &str) -> String {
    on_page(text).replace([SPACE, THIN], " ")
}

/// The text in the notation of a terminal, with no-break spaces; see [`broken`].
pub(crate) fn bound(text: &str) -> String {
    written(text, None)
}

/// The text with ordinary spaces for no-break ones, since terminals copy both.
pub(crate) fn broken(text: &str) -> String {
    text.replace(SPACE, " ")
}

/// The text in the notation of a terminal.
pub(crate) fn in_text(text: &str) -> String {
    broken(&bound(text))
}

fn written(text: &str, groups: Option<char>) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut page = String::with_capacity(text.len() + 8);
    for (place, word) in words.iter().enumerate() {
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        let is_unit = before.ends_with(|c: char| c.is_ascii_digit()) && begins_with_unit(word);
        if place > 0 {
            page.push(if is_unit { SPACE } else { ' ' });
        }
        let is_of_option = before
            .trim_start_matches(['(', '\'', '`'])
            .starts_with("--");
        // The number of a model: `Hewlett-Packard 97560`.
        let next = words.get(place + 1);
        let is_of_name = is_name(before) && !next.is_some_and(|next| begins_with_unit(next));
        let is_of_process = before.ends_with("PID");
        let groups = groups.filter(|_| !is_of_name && !is_of_process);
        match (is_unit, is_of_option) {
            (true, _) if word.starts_with("us") => page.push_str(&word.replacen('u', "µ", 1)),
            (true, _) | (false, true) => page.push_str(word),
            (false, false) => page.push_str(&number(word, groups)),
        }
    }
    page
}

/// Whether a word may be the name of a maker; a number after it is part of a product name, not a quantity.
fn is_name(word: &str) -> bool {
    let begin = word.trim_start_matches('(');
    begin.starts_with(char::is_uppercase)
        && begin.contains(char::is_lowercase)
        && begin.ends_with(char::is_alphabetic)
}

/// Whether a word after a number is its unit, with or without marks after it.
fn begins_with_unit(word: &str) -> bool {
    SPACED.iter().any(|unit| {
        let rest = word.strip_prefix(unit);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '='))
    })
}

/// A number in this notation, with or without a unit, and with marks around it; other words stay as they are.
fn number(word: &str, groups: Option<char>) -> String {
    let start = word.find(|c: char| !"([+-±".contains(c)).unwrap_or(0);
    let (before, rest) = word.split_at(start);
    let end_of_digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let (digits, after) = rest.split_at(end_of_digits(rest));
    if digits.is_empty() {
        return word.to_owned();
    }
    let is_end = |text: &str| text.chars().all(|c| ",;:.)]*".contains(c));
    let whole = match groups {
        Some(thin) => grouped(digits, thin),
        None => digits.to_owned(),
    };
    let (decimals, unit) = match after.strip_prefix('.') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            after.split_at(1 + end_of_digits(rest))
        }
        _ => ("", after),
    };
    let typed = TYPED.iter().find_map(|typed| {
        let shown = typed.replace('u', "µ");
        Some((shown, unit.strip_prefix(typed).filter(|rest| is_end(rest))?))
    });
    match typed {
        Some((shown, marks)) => format!("{before}{whole}{decimals}{SPACE}{shown}{marks}"),
        None if is_end(after) => format!("{before}{whole}{after}"),
        None => word.to_owned(),
    }
}

/// A text in which long whole numbers are in groups, and all else is as it was typed.
pub(crate) fn in_groups(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let is_whole = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        match is_whole {
            true => grouped(word, ' '),
            false => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
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
            (
                "Hewlett-Packard 97560, 12 us",
                "Hewlett-Packard 97560, 12\u{a0}µs",
            ),
            ("dd (PID 27298, ended)", "dd (PID 27298, ended)"),
            ("At 27298 IOPS", "At 27\u{202f}298\u{a0}IOPS"),
            ("27298 IOPS", "27\u{202f}298\u{a0}IOPS"),
            ("102280, and 1226", "102\u{202f}280, and 1226"),
            (
                "/mnt/12345678 of 2026-11-24 e12345",
                "/mnt/12345678 of 2026-11-24 e12345",
            ),
            ("816 us*", "816\u{a0}µs*"),
            ("816 µs", "816\u{a0}µs"),
            ("after 1.5s, 30s", "after 1.5\u{a0}s, 30\u{a0}s"),
            (
                "take --time 30s (--size 1GiB) or 'iolab run x --bs 4KiB'",
                "take --time 30s (--size 1GiB) or 'iolab run x --bs 4KiB'",
            ),
            ("4KiB,64KiB and 128-byte", "4KiB,64KiB and 128-byte"),
            ("10 used", "10 used"),
            ("12345.5", "12345.5"),
            ("", ""),
        ] {
            assert_eq!(on_page(text), page);
        }
    }

    #[test]
    fn terminal_text_has_no_groups_or_special_spaces() {
        assert_eq!(
            in_text("27298 IOPS at 4KiB (bs=4KiB), 12 us"),
            "27298 IOPS at 4 KiB (bs=4KiB), 12 µs"
        );
    }
}
