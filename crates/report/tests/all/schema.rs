//! JSON Schemas: each name has a meaning.

use iolab_report::document::DOCUMENTS;
use iolab_workload::response::Response;
use serde_json::Value;

#[test]
fn every_name_has_a_meaning() {
    for document in DOCUMENTS {
        let mut names = 0;
        let mut without = Vec::new();
        let schema = document.schema();
        look(schema.as_value(), "", &mut |path, property| {
            names += 1;
            let text = property["description"].as_str().unwrap_or_default();
            // A variant's name or tag is described at its object.
            let is_of_variant = path
                .rsplit_once('/')
                .is_some_and(|(of, _)| of.ends_with("Of/properties"))
                || property.get("const").is_some();
            if text.trim().is_empty() && !is_of_variant {
                without.push(path.to_owned());
            }
        });
        assert_eq!(without, [""; 0], "{}", document.name);
        assert!(names > 10, "{}: {names} names", document.name);
    }
}

#[test]
fn each_quantity_is_in_cells_and_trials() {
    let columns = |name: &str, place: &str| -> Vec<String> {
        let mut documents = DOCUMENTS.into_iter();
        let document = documents.find(|one| one.name == name).expect("listed");
        let schema = document.schema();
        let all = schema.as_value().pointer(place).and_then(Value::as_object);
        all.expect("columns").keys().cloned().collect()
    };
    let cells = columns("table", "/properties/cells/items/properties");
    let trials = columns("export", "/items/properties");
    for response in Response::ALL {
        let median = format!("{}_median", response.column());
        assert!(cells.contains(&median), "{median}");
        let of_reads = response.column_of("read_latency");
        assert!(
            !response.is_always_kept() || trials.contains(&of_reads),
            "{of_reads}"
        );
    }
}

/// Calls for every property of a schema, with its path.
fn look(schema: &Value, path: &str, each: &mut impl FnMut(&str, &Value)) {
    match schema {
        Value::Object(parts) => {
            for (name, part) in parts {
                let path = format!("{path}/{name}");
                if let ("properties" | "patternProperties", Value::Object(properties)) =
                    (name.as_str(), part)
                {
                    for (name, property) in properties {
                        let path = format!("{path}/{name}");
                        each(&path, property);
                        look(property, &path, each);
                    }
                } else {
                    look(part, &path, each);
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| look(part, path, each)),
        _ => {}
    }
}
