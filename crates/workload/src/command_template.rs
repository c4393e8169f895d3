//! Commands as users write them: words, quotes, and placeholders for each trial.
//!
//! No shell is involved, since its time would count. Words are split as by a shell (spaces, single and double quotes, backslash);
//! then `{file}`, `{size}` and `{bs}` are replaced word by word, so that a path with a space stays one argument.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::names::named;
use crate::{Error, Result};

/// Characters with a meaning to a shell, alone or first in a word; refused.
const OPERATORS: [char; 5] = ['|', '&', ';', '<', '>'];

/// The valid placeholders, for messages.
const GAPS: &str = "{file}, {size} and {bs} are filled in; write {{ for a brace";

/// A placeholder, replaced for each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// `{file}`: the path of the file to read.
    File,
    /// `{size}`: the size of the file, bytes.
    Size,
    /// `{bs}`: the I/O size in bytes, a number.
    Bs,
}

impl Placeholder {
    const ALL: [(&'static str, Self); 3] =
        [("file", Self::File), ("size", Self::Size), ("bs", Self::Bs)];
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Gap(Placeholder),
}

/// A program and its arguments, with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    program: String,
    arguments: Vec<Vec<Piece>>,
}

impl Template {
    /// The program: a name or a path.
    pub fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    /// Whether this placeholder occurs anywhere.
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        let gap = Piece::Gap(placeholder);
        self.arguments.iter().any(|word| word.contains(&gap))
    }

    /// The arguments for a trial on `file` with `size` bytes and I/O size `bs`, bytes.
    pub fn arguments(&self, file: &Path, size: u64, bs: u64) -> Vec<OsString> {
        let fill = |part: &Piece| match part {
            Piece::Text(text) => OsString::from(text),
            Piece::Gap(Placeholder::File) => file.as_os_str().to_owned(),
            Piece::Gap(Placeholder::Size) => size.to_string().into(),
            Piece::Gap(Placeholder::Bs) => bs.to_string().into(),
        };
        let word = |parts: &Vec<Piece>| parts.iter().map(fill).collect();
        self.arguments.iter().map(word).collect()
    }
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let mut words = split(text)?
            .into_iter()
            .map(|word| parts(&word))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        let program = match words.next().as_deref() {
            Some([Piece::Text(program)]) => program.clone(),
            None | Some([]) => {
                return Err(Error::usage("the command is empty")
                    .hint("write a program and its arguments, for example \"cat {file}\""));
            }
            Some(_) => {
                return Err(Error::usage("the program's own name cannot be filled in")
                    .hint("compare two programs as two commands, separated by a comma"));
            }
        };
        Ok(Self {
            text: text.to_owned(),
            program,
            arguments: words.collect(),
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Reads a text character by character and tracks quoting.
struct Scanner<'a> {
    rest: std::str::Chars<'a>,
    quote: Option<char>,
}

/// One character of a command, with its quoting.
enum Token {
    /// A character that is literal because of quotes or a backslash.
    Quoted(char),
    /// A character outside of quotes.
    Plain(char),
    /// A quotation mark that opens or closes.
    Mark,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars(),
            quote: None,
        }
    }

    /// The next token; an error when the text ends inside quotes or after a backslash.
    fn next(&mut self) -> Result<Option<Token>> {
        let open = |quote: char| {
            Error::usage(format!("a quotation mark {quote} is not closed"))
                .hint("close it, or put a backslash before it")
        };
        let Some(c) = self.rest.next() else {
            return self.quote.map_or(Ok(None), |quote| Err(open(quote)));
        };
        Ok(Some(match (self.quote, c) {
            (Some(quote), _) if c == quote => {
                self.quote = None;
                Token::Mark
            }
            (None, '\'' | '"') => {
                self.quote = Some(c);
                Token::Mark
            }
            (Some('"'), '\\') => match self.rest.clone().next() {
                Some(escaped @ ('"' | '\\')) => {
                    self.rest.next();
                    Token::Quoted(escaped)
                }
                _ => Token::Quoted('\\'),
            },
            (None, '\\') => match self.rest.next() {
                Some(escaped) => Token::Quoted(escaped),
                None => {
                    return Err(Error::usage("the command ends with a backslash")
                        .hint("write two of them for a backslash"));
                }
            },
            (Some(_), _) => Token::Quoted(c),
            (None, _) => Token::Plain(c),
        }))
    }
}

/// The words of a command, without quotes.
fn split(text: &str) -> Result<Vec<String>> {
    if text.contains('\0') {
        return Err(Error::usage("the command holds a NUL byte").hint("leave it out"));
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut scanner = Scanner::new(text);
    while let Some(token) = scanner.next()? {
        match token {
            Token::Plain(c) if c.is_whitespace() => words.extend(word.take()),
            Token::Plain(c) if word.is_none() && OPERATORS.contains(&c) => {
                return Err(Error::usage(format!(
                    "'{c}' needs a shell, but commands run without one"
                ))
                .hint("to time a shell with what it runs, write: sh -c '...'; for the character itself, quote it"));
            }
            Token::Plain(c) | Token::Quoted(c) => word.get_or_insert_default().push(c),
            Token::Mark => drop(word.get_or_insert_default()),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The parts of one word: `{{` and `}}` are braces, `{NAME}` is a placeholder.
fn parts(word: &str) -> Result<Vec<Piece>> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
        } else if brace == "}" {
            text.push('}');
            rest = after;
        } else {
            let (name, after) = after.split_once('}').ok_or_else(|| {
                Error::usage(format!("the brace of '{{{after}' is not closed")).hint(GAPS)
            })?;
            if !text.is_empty() {
                parts.push(Piece::Text(std::mem::take(&mut text)));
            }
            parts.push(Piece::Gap(placeholder(name)?));
            rest = after;
        }
    }
    text.push_str(rest);
    // An empty word is a valid argument.
    if !text.is_empty() || parts.is_empty() {
        parts.push(Piece::Text(text));
    }
    Ok(parts)
}

fn placeholder(name: &str) -> Result<Placeholder> {
    let known = Placeholder::ALL.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, placeholder)| *placeholder)
        .ok_or_else(|| Error::usage(format!("{{{name}}} is unknown")).hint(GAPS))
}

/// Splits `COMMAND,COMMAND` at commas that are neither quoted nor escaped.
///
/// Invalid text stays whole; parsing it as a command reports the error.
pub fn split_list(text: &str) -> Vec<String> {
    let mut scanner = Scanner::new(text);
    let (mut parts, mut start) = (Vec::new(), 0);
    loop {
        let at = text.len() - scanner.rest.as_str().len();
        match scanner.next() {
            Ok(Some(Token::Plain(','))) => {
                parts.push(text[start..at].to_owned());
                start = at + 1;
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    parts.push(text[start..].to_owned());
    parts
}

named! {
    /// The linkage of the built-in reader.
    pub enum Linkage: "linkage" {
        /// The program contains all code.
        Static = "static",
        /// The C library is loaded when the program starts.
        Dynamic = "dynamic",
    }
}

impl Linkage {
    /// The reader with its arguments, as run files store it.
    pub fn template(self) -> Template {
        let text = match self {
            Linkage::Static => "reader-static {file} {bs}",
            Linkage::Dynamic => "reader-dynamic {file} {bs}",
        };
        text.parse().expect("a constant that a test reads")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        split(text).expect("well-formed")
    }

    fn template(text: &str) -> Template {
        text.parse().expect("well-formed")
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (text, expected) in [
            ("a  b\tc\n", &["a", "b", "c"][..]),
            ("a 'b c' d", &["a", "b c", "d"]),
            (r#"a "b \"c\" \n" d"#, &["a", r#"b "c" \n"#, "d"]),
            (r"a\ b '\' \\", &["a b", "\\", "\\"]),
            ("a '' \"\"", &["a", "", ""]),
            ("a'b'\"c\"d", &["abcd"]),
            (
                "sh -c 'cat | wc > x; y &'",
                &["sh", "-c", "cat | wc > x; y &"],
            ),
            (r"echo \| a|b", &["echo", "|", "a|b"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_with_spaces_stays_one_argument() {
        let template = template("cmp --bytes={size} '{file}' -n{bs} {{x}} }");
        assert_eq!(template.program(), Path::new("cmp"));
        assert_eq!(
            template.arguments(Path::new("/a b/$(c)"), 10, 4096),
            ["--bytes=10", "/a b/$(c)", "-n4096", "{x}", "}"]
        );
        assert!(template.uses(Placeholder::File) && template.uses(Placeholder::Bs));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words_in in prop::collection::vec("[^'\0]*", 1..6)) {
            let text: Vec<String> = words_in.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(words(&text.join(" ")), words_in);
        }

        #[test]
        fn doubled_braces_are_braces(word in "[a-z{} ]{0,20}") {
            let doubled = word.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(parts(&doubled).expect("no gap"), [Piece::Text(word)]);
        }
    }
}
