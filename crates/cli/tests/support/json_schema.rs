//! Validation of a JSON document against its schema, which must have all names of the document. Supports the
//! keywords of iolab's schemas, and refuses others.

use std::path::Path;

use serde_json::{Map, Value};

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
    Check { root: schema }.value(schema, document, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    /// Checks a value, and that its object has only names that the schema has.
    fn value(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        self.said(schema, value, path, found);
        let mut named = Vec::new();
        if let Value::Object(object) = value
            && self.names(schema, value, &mut named)
        {
            let strangers = object.keys().filter(|name| {
                !named.iter().any(|part| match part.strip_prefix('^') {
                    Some(prefix) => name.starts_with(prefix),
                    None => part == *name,
                })
            });
            let strangers =
                strangers.map(|name| format!("{path}/{name}: the schema does not name it"));
            found.extend(strangers);
        }
    }

    fn said(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        if schema == &Value::Bool(false) {
            found.push(format!("{path}: the schema does not allow it"));
        }
        for (keyword, part) in schema.as_object().into_iter().flatten() {
            let is_as_said = match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "format" => true,
                // These keywords are checked with the list or object that has them.
                "properties"
                | "patternProperties"
                | "additionalProperties"
                | "prefixItems"
                | "items" => true,
                "$ref" => {
                    self.said(self.referred(part), value, path, found);
                    true
                }
                "type" => match part {
                    Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
                    one => is_of_type(one, value),
                },
                "enum" => part.as_array().expect("values").contains(value),
                "const" => part == value,
                "oneOf" => self.fitting(part, value).count() == 1,
                "anyOf" => self.fitting(part, value).count() > 0,
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

    /// The schemas of a choice that fit a value.
    fn fitting<'s>(
        &'s self,
        choice: &'s Value,
        value: &'s Value,
    ) -> impl Iterator<Item = &'s Value> {
        choice.as_array().expect("schemas").iter().filter(|one| {
            let mut faults = Vec::new();
            self.said(one, value, "", &mut faults);
            faults.is_empty()
        })
    }

    fn referred(&self, name: &Value) -> &Value {
        let pointer = name.as_str().and_then(|name| name.strip_prefix('#'));
        let named = pointer.and_then(|pointer| self.root.pointer(pointer));
        named.expect("what is referred to")
    }

    /// The names, and prefixes of names, that a schema has for an object; false if it has no names.
    fn names(&self, schema: &Value, value: &Value, into: &mut Vec<String>) -> bool {
        let mut says = schema.get("additionalProperties").is_some();
        if says {
            into.push("^".to_owned());
        }
        for keyword in ["properties", "patternProperties"] {
            let own = schema.get(keyword).and_then(Value::as_object);
            says |= own.is_some();
            into.extend(own.into_iter().flatten().map(|(name, _)| name.clone()));
        }
        if let Some(name) = schema.get("$ref") {
            says |= self.names(self.referred(name), value, into);
        }
        for one in ["oneOf", "anyOf"]
            .iter()
            .filter_map(|choice| schema.get(choice))
        {
            for fitting in self.fitting(one, value) {
                says |= self.names(fitting, value, into);
            }
        }
        says
    }

    fn object(
        &self,
        schema: &Value,
        object: &Map<String, Value>,
        path: &str,
        found: &mut Vec<String>,
    ) {
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
            if let Some(part) = part.or(schema.get("additionalProperties")) {
                self.value(part, value, &path, found);
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
