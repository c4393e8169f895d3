//! `iolab run --verify`: what it says, keeps and refuses. What it finds is shown by the truth suite, on a file system
//! that does not keep what it is given.

use crate::support::{exported, folder, run_tiny};

#[test]
fn what_was_written_is_read_back() {
    let folder = folder();
    let more = ["--verify", "--buffered", "-o", "r.iolab"];
    run_tiny(folder.path(), "write-random", &more).expect(0);
    for sample in exported(folder.path(), "r.iolab") {
        let of = |name: &str| {
            sample[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {sample}"))
        };
        assert_eq!(sample["verify"], true);
        assert!(of("verified_blocks") > 0 && of("verified_blocks") <= of("write_requests"));
        assert_eq!(of("verified_bytes"), of("verified_blocks") * of("bs_bytes"));
        for kind in ["corrupted", "misplaced", "stale", "torn", "lost"] {
            assert_eq!(of(&format!("{kind}_blocks")), 0);
            assert!(sample[format!("{kind}_first_offset")].is_null());
        }
    }
}
