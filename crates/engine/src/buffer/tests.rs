//! Tests.

use std::collections::HashSet;

use super::*;
use needs::settings;

fn address(slot: &Slot) -> usize {
    slot.address(0, 0).addr().get()
}

/// Whether a page is mapped, by this or another thread.
fn is_mapped(address: usize) -> bool {
    let mut resident = [0u8; 1];
    // SAFETY: mincore reads nothing at the address, and writes one byte for one page.
    let status = unsafe {
        libc::mincore(
            std::ptr::without_provenance_mut(address),
            1,
            resident.as_mut_ptr(),
        )
    };
    status == 0
}

#[test]
fn every_preparation_works() {
    let sizes = [4096, 3 << 20].into_iter();
    for (bs, name) in sizes.flat_map(|bs| BufferInit::NAMES.iter().map(move |name| (bs, name))) {
        let spec = settings(&format!("buffer_init={name} bs={bs} depth=2"));
        match Buffers::new(&spec, 0) {
            Ok(mut buffers) => {
                if bs > 4096 || spec.buffer_init == BufferInit::Huge {
                    assert_eq!(address(&buffers.home()[0]) % huge_page(), 0);
                    let _ = buffers.arena.as_ref().expect("memory").at(huge_page());
                }
                assert_eq!(address(&buffers.home()[1]) % 4096, 0);
                let zero = buffers.home_mut()[1].bytes().iter().all(|b| *b == 0);
                assert_eq!(zero, spec.buffer_init != BufferInit::Random, "{name}");
            }
            Err(error) => {
                assert!(error.message().contains("MADV"), "{error}");
                needs::skip(needs::Need::HugePages, error);
            }
        }
    }
}

fn writing(bs: u64, depth: u32) -> Buffers {
    let spec = settings(&format!("bs={bs} depth={depth} read_percent=0"));
    Buffers::new(&spec, 0).expect("memory")
}

#[test]
fn memory_stays_while_a_slot_is_away() {
    let (mut buffers, mut others) = (writing(4096, 2), writing(4096, 2));
    let mut lost = buffers.take().expect("two slots");
    let before = lost.bytes().to_vec();
    // A slot of other buffers does not replace the lost one.
    buffers.put(others.take().expect("two slots"));
    assert!(!buffers.is_complete() && !others.is_complete());
    drop(buffers);
    assert!(is_mapped(address(&lost)));
    assert_eq!(lost.bytes(), before);
    lost.bytes().fill(1);
}

#[test]
#[should_panic(expected = "inside its buffer")]
fn a_request_cannot_leave_its_buffer() {
    let mut buffers = writing(4096, 2);
    let mut slot = buffers.take().expect("two slots");
    slot.part(4000, 97);
}

#[test]
fn stamped_blocks_are_all_different_and_incompressible() {
    let mut buffers = writing(64 << 10, 2);
    let mut seen = HashSet::new();
    for generation in 0..50u64 {
        let bytes = buffers.home_mut()[(generation % 2) as usize].bytes();
        stamp(bytes, generation % 3 * (64 << 10), generation);
        for block in bytes.chunks(4096) {
            assert!(seen.insert(block.to_vec()), "a block came twice");
        }
    }
    let mut counts = [0u32; 256];
    buffers.home_mut()[0]
        .bytes()
        .iter()
        .for_each(|b| counts[usize::from(*b)] += 1);
    let entropy: f64 = counts
        .iter()
        .filter(|c| **c > 0)
        .map(|c| f64::from(*c) / 65_536.0)
        .map(|p| -p * p.log2())
        .sum();
    assert!(entropy > 7.9, "{entropy} bits per byte");
}

#[test]
fn small_blocks_are_stamped_inside_their_bounds() {
    let mut block = [7u8; 20];
    stamp(&mut block, 5, 6);
    assert_eq!(block[16..], [7; 4]);
    assert_eq!(
        block[..16],
        [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]
    );
    // Nothing is written to a block that is smaller than a stamp.
    stamp(&mut block[..15], 9, 9);
    assert_eq!(block[0], 5);
}

#[test]
fn many_workers_with_small_buffers_share_huge_pages() {
    let of = |sets: &str| bytes_of(&settings(sets));
    assert_eq!(of("buffer_memory=contiguous threads=1024"), 4 << 20);
    assert_eq!(of("buffer_memory=contiguous"), 2 << 20);
    assert_eq!(of("buffer_memory=kernel threads=1024"), 4 << 20);
    assert_eq!(of("buffer_memory=contiguous cache=hot"), 4096);
}

#[test]
fn pieces_are_counted_if_the_kernel_shows_them() {
    let memory = vec![1u8; 1 << 20];
    let start = memory.as_ptr().addr();
    let Some(pieces) = Pieces::of(&(start..start + memory.len())) else {
        return needs::skip(needs::Need::Pagemap, "it shows none to this user");
    };
    assert!(pieces.count >= 1 && pieces.bytes >= 1 << 20, "{pieces:?}");
    assert!(pieces.count <= pieces.bytes / iolab_storage::procfs::page_size() as u64);
}
