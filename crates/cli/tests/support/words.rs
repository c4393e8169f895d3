//! Command lines written as one string.

/// The words of a command line without quotes, as an array: `words!("run read-size -o r.iolab")`.
macro_rules! words {
    ($line:literal) => {{
        const COUNT: usize = $crate::support::words::count($line);
        const WORDS: [&str; COUNT] = $crate::support::words::split($line);
        WORDS
    }};
}
pub(crate) use words;

/// Number of words in a text with single spaces.
pub(crate) const fn count(line: &str) -> usize {
    let (mut at, mut spaces) = (0, 0);
    while at < line.len() {
        spaces += (line.as_bytes()[at] == b' ') as usize;
        at += 1;
    }
    spaces + 1
}

/// The words of a line of `COUNT` words.
pub(crate) const fn split<const COUNT: usize>(line: &str) -> [&str; COUNT] {
    let mut words = [line; COUNT];
    let (mut rest, mut at, mut word) = (line, 0, 0);
    while at < rest.len() {
        if rest.as_bytes()[at] == b' ' {
            let (first, behind) = rest.split_at(at);
            words[word] = first;
            (rest, at, word) = (behind.split_at(1).1, 0, word + 1);
        } else {
            at += 1;
        }
    }
    words[word] = rest;
    words
}
