//! Files of what a command saw: read back as they were written, and other files are not taken for one.

use iolab_record::Observation;
use iolab_record::tables::OBSERVATION;

use super::*;

/// An observation with a value in every column.
pub(super) fn full() -> Observation {
    Observation {
        command: "look".to_owned(),
        content: "{\"bytes\": 7}".to_owned(),
        environment: environment(),
        ..filled(&OBSERVATION, &["command", "content"])
    }
}

fn stored(observation: &Observation) -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    let path = create_observation(&fixture.path("o.iolab"), observation).unwrap();
    (fixture, path)
}

#[test]
fn an_observation_is_read_as_it_was_written() {
    let (_folder, path) = stored(&full());
    let read = read_content(&path).unwrap();
    assert_eq!(read, Content::Observation(Box::new(full())));
}

/// The file may come from a stranger.
#[test]
fn impossible_observations_are_refused() {
    for change in [
        "UPDATE observation SET command = 'a b'",
        "UPDATE observation SET content = '{\"bytes\":'",
        "UPDATE observation SET content = json_set(content, '$.bytes', 1 << 61)",
        "UPDATE observation SET content = json_set(content, '$.inner', json('[{\"a\": 2305843009213693952}]'))",
    ] {
        let (_folder, path) = stored(&full());
        alter(&path, change);
        let found = read_content(&path).map(drop);
        assert_eq!(
            found.map_err(|error| error.kind()),
            Err(Kind::Usage),
            "{change}"
        );
    }
}
