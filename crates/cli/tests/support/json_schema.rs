//! Validation of a JSON document against its schema, which must have all names of the document. Supports the
//! keywords of iolab's schemas, and refuses others.

use std::path::Path;

use serde_json::Value;

use super::run;

/// Asserts that the JSON output of a command is valid against `iolab schema NAME`.
#[track_caller]
pub(crate) fn assert_as_described(folder: &Path, name: &str, document: &Value) {
    let schema = run(folder, &["schema", name]).expect(0).stdout;
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(faults(&schema, document), [""; 0], "{name}");
}

/// Faults of a document, one line each, with their paths.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, document, true, "", &mut found);
    found
}

/// Checks a value, and on request that its object has only names that the schema has.
fn check(
    root: &Value,
    schema: &Value,
    value: &Value,
    all: bool,
    path: &str,
    found: &mut Vec<String>,
) {
    let fits = |one: &&Value| {
        let mut faults = Vec::new();
        check(root, one, value, false, path, &mut faults);
        faults.is_empty()
    };
    // The schema, what it refers to, and alternatives that fit.
    let mut parts = vec![schema];
    let mut at = 0;
    while let Some(part) = parts.get(at).copied() {
        at += 1;
        if let Some(name) = part.get("$ref").and_then(Value::as_str) {
            parts.extend(root.pointer(name.trim_start_matches('#')));
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(choices) = part.get(choice).and_then(Value::as_array) {
                let fitting: Vec<&Value> = choices.iter().filter(fits).collect();
                if fitting.is_empty() || choice == "oneOf" && fitting.len() > 1 {
                    found.push(format!("{path}: {} of {choice} fit", fitting.len()));
                }
                parts.extend(fitting);
            }
        }
        if let Some(keyword) = broken(part, value) {
            let shown: String = value.to_string().chars().take(80).collect();
            found.push(format!("{path}: {keyword}: {shown}"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        let mut named = parts
            .iter()
            .filter_map(|part| property(part, name))
            .peekable();
        let has_names = |part: &&Value| {
            let keywords = ["properties", "patternProperties", "additionalProperties"];
            keywords.iter().any(|keyword| part.get(keyword).is_some())
        };
        if all && named.peek().is_none() && parts.iter().any(has_names) {
            found.push(format!("{path}: the schema does not name it"));
        }
        named.for_each(|part| check(root, part, inner, true, &path, found));
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        for part in &parts {
            let own = part["prefixItems"].get(place).or(part.get("items"));
            if let Some(part) = own {
                check(root, part, item, true, &format!("{path}[{place}]"), found);
            }
        }
    }
}

/// The schema of a property by its name, by a pattern, or of all others.
fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let mut patterns = schema["patternProperties"]
        .as_object()
        .into_iter()
        .flatten();
    let of_pattern = || {
        let prefix = |pattern: &str| pattern.strip_prefix('^').expect("a prefix").to_owned();
        patterns
            .find(|(pattern, _)| name.starts_with(&prefix(pattern)))
            .map(|(_, part)| part)
    };
    let named = schema["properties"].get(name).or_else(of_pattern);
    named.or(schema.get("additionalProperties"))
}

/// The first keyword of a schema that a value breaks by itself.
fn broken<'s>(schema: &'s Value, value: &Value) -> Option<&'s str> {
    if schema == &Value::Bool(false) {
        return Some("nothing is allowed");
    }
    let length = value.as_array().map(|items| items.len() as f64);
    let keeps = |keyword: &str, part: &Value| match keyword {
        "type" => match part {
            Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
            one => is_of_type(one, value),
        },
        "enum" => part.as_array().expect("values").contains(value),
        "const" => part == value,
        "required" => value.as_object().is_none_or(|object| {
            let mut names = part.as_array().expect("names").iter();
            names.all(|name| object.contains_key(name.as_str().expect("a name")))
        }),
        "minimum" => value.as_f64() >= part.as_f64() || !value.is_number(),
        "maximum" => value.as_f64() <= part.as_f64() || !value.is_number(),
        "minItems" => length.is_none() || length >= part.as_f64(),
        "maxItems" => length.is_none() || length <= part.as_f64(),
        "$schema"
        | "$id"
        | "$defs"
        | "title"
        | "description"
        | "format"
        | "properties"
        | "$ref"
        | "patternProperties"
        | "additionalProperties"
        | "prefixItems"
        | "items"
        | "uniqueItems"
        | "oneOf"
        | "anyOf" => true,
        other => panic!("the keyword {other} is unknown"),
    };
    let mut keywords = schema.as_object().into_iter().flatten();
    keywords
        .find(|(keyword, part)| !keeps(keyword, part))
        .map(|(keyword, _)| keyword.as_str())
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other} is unknown"),
    }
}
