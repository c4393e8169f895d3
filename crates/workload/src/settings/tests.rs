use std::collections::BTreeMap;

use super::setting::OR_NONE;
use super::*;

/// The fields of a value as `{:#?}` writes them, by name.
fn fields(value: &impl fmt::Debug) -> BTreeMap<String, String> {
    let text = format!("{value:#?}");
    let mut fields = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        let own = line
            .strip_prefix("    ")
            .filter(|own| own.starts_with(|c: char| c.is_ascii_lowercase()));
        if let Some((field, _)) = own.and_then(|own| own.split_once(": ")) {
            field.clone_into(&mut name);
        }
        fields
            .entry(name.clone())
            .or_insert_with(String::new)
            .push_str(line);
    }
    fields
}

#[test]
fn every_setting_sets_its_field_and_no_other() {
    let plain = CellSpec::default();
    let all = |cell: &CellSpec| {
        let mut all = fields(&cell.trial);
        all.extend(fields(cell).into_iter().filter(|(name, _)| name != "trial"));
        all
    };
    let mut unset = all(&plain);
    for setting in SETTINGS {
        let mut cell = plain.clone();
        setting.set(&mut cell, setting.example).unwrap();
        let canonical = setting.get(&cell);
        assert_eq!(setting.canonical(&canonical).unwrap(), canonical);
        assert!(
            setting.value(&cell) != setting.value(&plain),
            "{}",
            setting.name
        );
        for other in SETTINGS.iter().filter(|other| *other != setting) {
            assert_eq!(other.get(&cell), other.get(&plain), "{}", setting.name);
        }
        let changed = all(&cell);
        unset.retain(|name, text| changed.get(name) == Some(text));
    }
    // Set for each trial, or values of another setting.
    let names: Vec<&str> = unset.keys().map(String::as_str).collect();
    assert_eq!(names, ["", "groups", "others", "seed", "unknown"]);
}

#[test]
fn defaults_can_be_written_and_read() {
    for setting in SETTINGS {
        let default = setting.get(&CellSpec::default());
        assert_eq!(setting.canonical(&default).unwrap(), default);
    }
}

#[test]
fn optional_settings_take_none_and_say_so_once() {
    for setting in SETTINGS {
        let mut cell = CellSpec::default();
        let absent = setting.set(&mut cell, "none").is_ok();
        let absent = absent && matches!(setting.value(&cell), Value::None);
        assert_eq!(setting.is_optional, absent, "{}", setting.name);
        let refused = ["!", "0", "-1"].map(|text| setting.canonical(text).err());
        for error in refused.into_iter().flatten() {
            let remedy = error.remedy().unwrap_or_default();
            assert_eq!(remedy.ends_with(OR_NONE), absent, "{error}");
            assert_eq!(
                remedy.matches("or none").count(),
                usize::from(absent),
                "{error}"
            );
        }
    }
}

#[test]
fn every_setting_has_a_shown_topic() {
    for setting in SETTINGS {
        assert!(Topic::ALL.contains(&setting.topic), "{}", setting.name);
    }
}

#[test]
fn a_word_identifies_its_setting() {
    for (word, change) in [
        ("fdatasync", Some("sync=fdatasync")),
        ("io_uring", Some("backend=io_uring")),
        ("iodepth", Some("depth=...")),
        ("odsync", Some("sync=odsync")),
        ("none", None),
        ("zzzzzz", None),
        ("/mnt/disk", None),
    ] {
        assert_eq!(Setting::change_named(word).as_deref(), change, "{word}");
    }
}
