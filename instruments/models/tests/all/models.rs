//! Properties of every model: each request completes once, in the order of time, and the same calls give the same results.

use iolab_models::build;
use iolab_models::definition::{self, Definition};
use iolab_workload::virtual_disk::{Completion, Model, Ns, Op, Request, ServedFrom};
use proptest::prelude::*;

use super::hostile::PARTS;
use crate::drain;

fn definitions() -> Vec<Definition> {
    let catalogue = definition::ENTRIES.iter().map(|(_, text)| *text);
    catalogue
        .chain(PARTS)
        .map(|text| Definition::parse(text).unwrap())
        .collect()
}

/// One request of a random load: pause before it, kind, place and size.
type Step = (u32, u8, u32, u32);

fn run(model: &mut dyn Model, steps: &[Step]) -> (Vec<Ns>, Vec<Completion>) {
    let capacity = model.capacity();
    let (mut now, mut submitted, mut out) = (0, Vec::new(), Vec::new());
    for (tag, &(pause, kind, place, size)) in steps.iter().enumerate() {
        now += u64::from(pause);
        model.advance(now, &mut out);
        let len = (u64::from(size) % 300_000).min(capacity / 2);
        let offset = (u128::from(place) * u128::from(capacity - len) / u128::from(u32::MAX)) as u64;
        let op = match kind {
            0..=4 => Op::Read,
            5..=8 => Op::Write,
            9 => Op::Flush,
            _ => Op::Trim,
        };
        model.submit(now, tag as u64, &Request { op, offset, len });
        submitted.push(now);
    }
    drain(model, &mut out);
    (submitted, out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_once_and_in_time(
        steps in prop::collection::vec((prop_oneof![Just(0u32), 0u32..3_000_000, 0u32..60_000_000], 0u8..11, any::<u32>(), any::<u32>()), 1..60),
        nearby in any::<bool>(),
    ) {
        let steps: Vec<Step> = if nearby {
            steps.iter().map(|&(pause, kind, place, size)| (pause, kind, place % 60_000, size % 9000)).collect()
        } else {
            steps
        };
        for definition in definitions() {
            let title = &definition.title;
            let (submitted, out) = run(&mut *build(&definition, 5).unwrap(), &steps);
            let mut tags: Vec<u64> = out.iter().map(|one| one.tag).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..steps.len() as u64).collect::<Vec<_>>(), "{}", title);
            for one in &out {
                prop_assert!(one.finished >= submitted[one.tag as usize], "{}: {:?}", title, one);
                prop_assert!(one.served != ServedFrom::Refused, "{}: {:?}", title, one);
            }
            prop_assert!(out.is_sorted_by_key(|one| one.finished), "{}", title);
            let (_, again) = run(&mut *build(&definition, 5).unwrap(), &steps);
            prop_assert_eq!(out, again, "{}", title);
        }
    }
}

#[test]
fn a_range_outside_is_refused_at_once() {
    for definition in definitions() {
        let mut model = build(&definition, 0).unwrap();
        let capacity = model.capacity();
        for request in [
            Request::read(capacity, 1),
            Request::write(capacity - 1, 2),
            Request::read(u64::MAX, 2),
        ] {
            let completion = iolab_models::serve(&mut *model, 77, &request);
            assert_eq!(
                (completion.finished, completion.served),
                (77, ServedFrom::Refused),
                "{}",
                definition.title
            );
        }
    }
}

#[test]
fn combined_parts_survive_being_written() {
    for definition in definitions() {
        let again = Definition::parse(&toml::to_string(&definition).unwrap());
        assert_eq!(again.as_ref(), Ok(&definition));
    }
}
