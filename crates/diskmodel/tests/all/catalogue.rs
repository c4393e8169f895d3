//! Built-in definitions, and invalid ones.

use iolab_diskmodel::definition::{self, Definition, PartDefinition};

#[test]
fn the_definitions_survive_being_written() {
    for entry in definition::ENTRIES {
        let definition = definition::find(entry.name).unwrap().unwrap();
        let again = Definition::parse(&definition.to_toml().unwrap()).unwrap();
        assert_eq!(definition, again, "{}", entry.name);
        assert!(!definition.source.is_empty(), "{}", entry.name);
        if let PartDefinition::Disk(disk) = &definition.model {
            assert!(disk.geometry.zone.iter().all(|zone| zone.sectors > 0));
        }
    }
}

#[test]
fn what_is_no_definition_is_refused() {
    assert!(Definition::parse("title = 1").is_err());
}
