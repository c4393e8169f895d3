//! Written content against a plain array.

use iolab_models::serve::{Content, PAGE};
use proptest::prelude::*;

const BYTES: u64 = 10 * PAGE as u64;

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u64, u8),
    Discard(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = (0..BYTES, 1..3 * PAGE as u64).prop_map(|(at, len)| (at, len.min(BYTES - at)));
    let step = (range, any::<bool>(), 1..=255u8).prop_map(|((at, len), write, byte)| {
        if write {
            Step::Write(at, len, byte)
        } else {
            Step::Discard(at, len)
        }
    });
    prop::collection::vec(step, 1..30)
}

proptest! {
    #[test]
    fn it_reads_as_an_array_does(steps in steps(), (from, len) in (0..BYTES, 1..BYTES)) {
        let mut content = Content::new(BYTES);
        let mut array = vec![0; BYTES as usize];
        for step in steps {
            match step {
                Step::Write(at, len, byte) => {
                    content.write(at, &vec![byte; len as usize]);
                    array[at as usize..(at + len) as usize].fill(byte);
                }
                Step::Discard(at, len) => {
                    content.discard(at, len);
                    array[at as usize..(at + len) as usize].fill(0);
                }
            }
        }
        prop_assert_eq!(content.lost(), 0);
        let len = len.min(BYTES - from) as usize;
        let read = content.read(from, len).unwrap_or_else(|| vec![0; len]);
        prop_assert_eq!(&read[..], &array[from as usize..][..len]);
    }
}

#[test]
fn data_without_room_is_counted_and_lost() {
    let page = PAGE as u64;
    let mut content = Content::new(2 * page);
    content.write(0, &[1; PAGE]);
    content.write(5 * page, &vec![2; 2 * PAGE]);
    assert_eq!(content.lost(), page);
    assert_eq!(content.read(6 * page, PAGE), None);
    // Stored pages can be overwritten, and discarded pages free memory.
    content.write(5 * page, &[3; PAGE]);
    content.discard(0, page);
    content.write(6 * page, &[4; PAGE]);
    assert_eq!(content.lost(), page);
    assert_eq!(content.read(5 * page, 1), Some(vec![3]));
    assert_eq!(content.read(6 * page, 1), Some(vec![4]));
}

#[test]
fn range_beyond_all_data_is_discarded_at_once() {
    let mut content = Content::new(1 << 20);
    content.write(1 << 60, &[1; PAGE]);
    content.write(7, &[1; 2]);
    content.discard(8, (1 << 63) - 8);
    assert_eq!(content.read(1 << 60, PAGE), None);
    assert_eq!(content.read(7, 2), Some(vec![1, 0]));
}
