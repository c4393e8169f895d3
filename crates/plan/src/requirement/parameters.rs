//! Parameters of a requirement, and the texts that are derived from them: `{batch * record_mb / step_s}`.

use iolab_workload::names::unknown;
use iolab_workload::{Error, Result, usage_errors};

/// Digits of a number that is derived.
const DIGITS: i32 = 4;

/// Parameters by name, in the order of the document.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parameters(Vec<(String, f64)>);

/// A text with its expressions replaced by their values.
#[derive(Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) text: String,
    /// The expressions with the parameters in them: `batch=7 * step_s=0.323`; empty without any.
    pub(super) from: Vec<String>,
}

impl Parameters {
    /// Adds a parameter with its default.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a name that no expression could have, or a value that is none.
    pub(super) fn add(&mut self, name: &str, value: f64) -> Result<()> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        usage_errors! {
            !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_letter) =>
                format!("'{name}' is not a name of a parameter"), "use letters, digits and _, a letter first";
            !is_value(value) => format!("the parameter {name} is {value}"), "give it a number above 0";
        }
        self.0.push((name.to_owned(), value));
        Ok(())
    }

    /// Changes a parameter: `NAME=VALUE`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such parameter, or a value that is none.
    pub(super) fn set(&mut self, of: &str, change: &str) -> Result<()> {
        let wrong = |what: &str| {
            Error::usage(format!("--set {change}: {what}")).hint("write NAME=NUMBER, above 0")
        };
        let (name, value) = change
            .split_once('=')
            .ok_or_else(|| wrong("there is no ="))?;
        if self.0.is_empty() {
            return Err(
                Error::usage(format!("--set {change}: {of} has no parameters"))
                    .hint(format!("change a copy: iolab show {of} > mine.toml")),
            );
        }
        let known: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let place = known.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| unknown(&format!("parameter of {of}"), name, &known))?;
        let value = value.parse().ok().filter(|value| is_value(*value));
        self.0[place].1 = value.ok_or_else(|| wrong("it is not a number above 0"))?;
        Ok(())
    }

    /// Replaces every `{EXPRESSION}`: names and numbers with `*` and `/` between them, from left to right.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an expression that cannot be read.
    pub(super) fn fill(&self, text: &str) -> Result<Filled> {
        let mut filled = Filled {
            text: String::new(),
            from: Vec::new(),
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}').ok_or_else(|| {
                Error::usage(format!("the brace of '{{{after}' is not closed")).hint(HINT)
            })?;
            let (value, from) = self.value(expression)?;
            filled.text += before;
            filled.text += &rounded(value).to_string();
            filled.from.push(from);
            rest = after;
        }
        filled.text += rest;
        Ok(filled)
    }

    /// The value of an expression, and the expression with values.
    fn value(&self, expression: &str) -> Result<(f64, String)> {
        let wrong = |what: String| Error::usage(format!("{{{expression}}}: {what}")).hint(HINT);
        let mut words = expression.split_whitespace();
        let mut from = String::new();
        let mut operand = |from: &mut String| {
            let word = words
                .next()
                .ok_or_else(|| wrong("a name or a number is missing".to_owned()))?;
            let own = self.0.iter().find(|(name, _)| name == word);
            let (value, shown) = match own {
                Some((name, value)) => (*value, format!("{name}={value}")),
                None => match word.parse().ok().filter(|value| is_value(*value)) {
                    Some(value) => (value, word.to_owned()),
                    None => {
                        return Err(wrong(format!(
                            "'{word}' is neither a parameter nor a number above 0"
                        )));
                    }
                },
            };
            from.push_str(&shown);
            Ok((value, words.next()))
        };
        let (mut value, mut next) = operand(&mut from)?;
        while let Some(operator) = next {
            from.push_str(&format!(" {operator} "));
            let (other, after) = operand(&mut from)?;
            value = match operator {
                "*" => value * other,
                "/" => value / other,
                _ => return Err(wrong(format!("'{operator}' is neither * nor /"))),
            };
            next = after;
        }
        match is_value(value) {
            true => Ok((value, from)),
            false => Err(wrong(format!("its value is {value}"))),
        }
    }
}

const HINT: &str = "write names of [parameters] and numbers with * and / between them: {batch * record_mb / step_s}";

fn is_value(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// A whole number as it is, another one with [`DIGITS`] digits.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 {
        return value;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parameters() -> Parameters {
        let mut own = Parameters::default();
        for (name, value) in [("batch", 7.0), ("record_mb", 146.600628), ("step_s", 0.323)] {
            own.add(name, value).expect("valid");
        }
        own
    }

    #[test]
    fn expressions_become_numbers_with_their_origin() {
        let mut own = parameters();
        let filled = own
            .fill("throughput>{batch * record_mb / step_s * 0.9}MB/s")
            .expect("valid");
        assert_eq!(filled.text, "throughput>2859MB/s");
        assert_eq!(
            filled.from,
            ["batch=7 * record_mb=146.600628 / step_s=0.323 * 0.9"]
        );
        own.set("x", "batch=400").expect("known");
        assert_eq!(
            own.fill("{batch} and {batch / 3}").expect("valid").text,
            "400 and 133.3"
        );
        assert_eq!(own.fill("p99<5ms").expect("plain").from, [""; 0]);
    }

    #[test]
    fn mistakes_in_expressions_are_named() {
        let mut own = parameters();
        let told = [
            "{", "{}", "{batch *}", "{bach}", "{batch + 1}", "{0}", "{batch batch}",
        ]
        .map(|text| own.fill(text).expect_err(text).message().to_owned());
        let set = ["batch", "batch=0", "batch=x", "bach=1"]
            .map(|text| own.set("mine", text).expect_err(text).to_string());
        let none = Parameters::default()
            .set("etcd", "a=1")
            .expect_err("none")
            .to_string();
        insta::assert_snapshot!([&told[..], &set, &[none]].concat().join("\n"), @"
        the brace of '{' is not closed
        {}: a name or a number is missing
        {batch *}: a name or a number is missing
        {bach}: 'bach' is neither a parameter nor a number above 0
        {batch + 1}: '+' is neither * nor /
        {0}: '0' is neither a parameter nor a number above 0
        {batch batch}: a name or a number is missing
        --set batch: there is no =
          write NAME=NUMBER, above 0
        --set batch=0: it is not a number above 0
          write NAME=NUMBER, above 0
        --set batch=x: it is not a number above 0
          write NAME=NUMBER, above 0
        parameter of mine 'bach' is unknown
          did you mean batch?
        --set a=1: etcd has no parameters
          change a copy: iolab show etcd > mine.toml
        ");
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_refused(text: String) {
            let _ = parameters().fill(&text);
        }

        #[test]
        fn derived_numbers_keep_four_digits(value in 1e-6..1e12_f64) {
            let shown = rounded(value);
            prop_assert!((shown / value - 1.0).abs() <= 5.1e-4);
        }
    }
}
