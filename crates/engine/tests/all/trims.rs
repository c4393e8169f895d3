//! Trims of a file that was there before: no byte outside of the region changes, and those inside become zeros.

use iolab_storage::{Consent, Need, Target};
use iolab_workload::outcome::Failure;
use needs::settings;

use crate::files::{folder, run};

#[test]
fn a_trimmed_region_of_ones_becomes_zeros() {
    for (bs, backend) in [(4096, "sync"), (2300, "psync"), (1, "pvsync2")] {
        let (offset, region) = (3000_usize, 20 * bs);
        let common = "read_percent=0 trim_percent=100 pattern=rand cache=cold";
        let spec = settings(&format!(
            "{common} bs={bs} offset={offset} region={region} backend={backend}"
        ));
        let folder = folder();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![1; offset + region + 1000]).expect("written");
        let need = Need {
            consent: Consent::Destroy,
            ..Need::writing(spec.offset + spec.region)
        };
        let target = Target::open(&path, &need).expect("opens");
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => return needs::skip(needs::Need::Trim, error),
        };
        if let Some(failure) = outcome.failure {
            let unknown = matches!(&failure, Failure::Request(it) if it.errno == libc::EOPNOTSUPP);
            assert!(unknown, "{failure:?}");
            return needs::skip(needs::Need::Trim, format!("{failure:?}"));
        }
        let mut expected = vec![1; offset + region + 1000];
        expected[offset..offset + region].fill(0);
        assert!(
            std::fs::read(&path).expect("readable") == expected,
            "{spec:?}"
        );
    }
}
