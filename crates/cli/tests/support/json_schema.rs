//! Whether a JSON document is as its schema says, and holds nothing that the schema does not name. It knows the keywords that
//! iolab's schemas have, and refuses others.

use std::path::Path;

use serde_json::{Map, Value};

use super::run;

/// Asserts that what a command prints as JSON is as `iolab schema NAME` says.
#[track_caller]
pub(crate) fn assert_as_described(folder: &Path, name: &str, document: &Value) {
    let schema = run(folder, &["schema", name]).expect(0).stdout;
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(faults(&schema, document), [""; 0], "{name}");
}

/// What is wrong with a document, a line each with its path.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema }.value(schema, document, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        for (keyword, part) in schema.as_object().expect("a schema") {
            let is_as_said = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "format" => true,
                // With the list or the object itself, below.
                "properties"
                | "patternProperties"
                | "additionalProperties"
                | "prefixItems"
                | "items" => true,
                "$ref" => {
                    let pointer = part.as_str().and_then(|part| part.strip_prefix('#'));
                    let named = pointer.and_then(|pointer| self.root.pointer(pointer));
                    self.value(named.expect("what is referred to"), value, path, found);
                    true
                }
                "type" => match part {
                    Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
                    one => is_of_type(one, value),
                },
                "enum" => part.as_array().expect("values").contains(value),
                "const" => part == value,
                "oneOf" | "anyOf" => {
                    let fits = |one: &&Value| {
                        let mut faults = Vec::new();
                        self.value(one, value, path, &mut faults);
                        faults.is_empty()
                    };
                    let number = part
                        .as_array()
                        .expect("schemas")
                        .iter()
                        .filter(fits)
                        .count();
                    number == 1 || number > 1 && keyword == "anyOf"
                }
                "required" => value.as_object().is_none_or(|object| {
                    let mut names = part.as_array().expect("names").iter();
                    names.all(|name| object.contains_key(name.as_str().expect("a name")))
                }),
                "minimum" => value
                    .as_f64()
                    .is_none_or(|n| n >= part.as_f64().expect("a number")),
                "maximum" => value
                    .as_f64()
                    .is_none_or(|n| n <= part.as_f64().expect("a number")),
                "minItems" => length(value).is_none_or(|n| n >= part.as_u64().expect("a number")),
                "maxItems" => length(value).is_none_or(|n| n <= part.as_u64().expect("a number")),
                other => panic!("the keyword {other} is unknown"),
            };
            if !is_as_said {
                let shown: String = value.to_string().chars().take(80).collect();
                found.push(format!("{path}: {keyword} {part}: {shown}"));
            }
        }
        match value {
            Value::Object(object) => self.object(schema, object, path, found),
            Value::Array(items) => self.list(schema, items, path, found),
            _ => {}
        }
    }

    fn object(
        &self,
        schema: &Value,
        object: &Map<String, Value>,
        path: &str,
        found: &mut Vec<String>,
    ) {
        // What a reference or an alternative describes is looked at there.
        let describes = ["properties", "patternProperties", "additionalProperties"];
        if describes
            .iter()
            .all(|keyword| schema.get(keyword).is_none())
        {
            return;
        }
        let patterns = || {
            schema["patternProperties"]
                .as_object()
                .into_iter()
                .flatten()
        };
        for (name, value) in object {
            let path = format!("{path}/{name}");
            let of_pattern = || {
                let prefix =
                    |pattern: &str| pattern.strip_prefix('^').expect("a prefix").to_owned();
                let mut all = patterns();
                all.find(|(pattern, _)| name.starts_with(&prefix(pattern)))
                    .map(|(_, part)| part)
            };
            let part = schema["properties"].get(name).or_else(of_pattern);
            match part.or(schema.get("additionalProperties")) {
                Some(part) => self.value(part, value, &path, found),
                None => found.push(format!("{path}: the schema does not name it")),
            }
        }
    }

    fn list(&self, schema: &Value, items: &[Value], path: &str, found: &mut Vec<String>) {
        for (place, item) in items.iter().enumerate() {
            let own = schema["prefixItems"].get(place).or(schema.get("items"));
            if let Some(own) = own {
                self.value(own, item, &format!("{path}/{place}"), found);
            }
        }
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
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
