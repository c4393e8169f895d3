//! Names: those that are in no table, with what was probably meant; those that become file names.

use crate::{Error, Result};
use strsim::osa_distance;

/// The error for a name that is in no table, with the nearest known names.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let near = nearest(name, known);
    let hint = match near.as_slice() {
        [] => format!("it is one of: {}", known.join(", ")),
        near => format!("did you mean {}?", alternatives(near)),
    };
    Error::usage(format!("{what} '{name}' is unknown")).hint(hint)
}

/// Alternatives in a sentence: `a`, `a or b`, `a, b or c`.
pub fn alternatives(names: &[&str]) -> String {
    match names {
        [others @ .., next, last] => {
            let others: String = others.iter().map(|name| format!("{name}, ")).collect();
            format!("{others}{next} or {last}")
        }
        _ => names.concat(),
    }
}

/// Known names that a slip of the keyboard could have turned into `name`, nearest first, at most three.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    // A name from a stranger's file may be of any length; only short ones can be near.
    if name.is_empty() || name.len() > 64 {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|candidate| (osa_distance(&lower, candidate), *candidate))
        .filter(|(far, candidate)| {
            *far <= candidate.len().div_ceil(3) || (name.len() > 2 && candidate.contains(&lower))
        })
        .collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Checks a name, which becomes a file name.
///
/// # Errors
/// Of kind usage: it cannot be one.
pub fn check_file_name(name: &str) -> Result<String> {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if fits {
        return Ok(name.to_owned());
    }
    Err(
        Error::usage(format!("{name:?} is not a valid name for a file"))
            .hint("use 1 to 64 letters, digits, '-', '_' and '.', a letter or digit first"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SETTINGS;

    #[test]
    fn alternatives_read_as_a_sentence() {
        assert_eq!(alternatives(&["a"]), "a");
        assert_eq!(alternatives(&["a", "b"]), "a or b");
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
    }

    #[test]
    fn near_names_are_offered() {
        let known: Vec<&str> = SETTINGS.iter().map(|s| s.name).collect();
        assert_eq!(nearest("patern", &known)[0], "pattern");
        assert_eq!(nearest("thread", &known)[0], "threads");
        assert_eq!(nearest("percent", &known)[0], "read_percent");
        // Two neighbours in the wrong order are one slip.
        assert_eq!(nearest("sb", &known)[0], "bs");
        assert!(nearest("zzzzzz", &known).is_empty());
        assert!(nearest(&"x".repeat(1 << 20), &known).is_empty());
    }
}
