//! The run files that earlier versions have stored.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Unpacks one of them.
pub(crate) fn unpack(version: i64, name: &str, to: &Path) {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
        "../runfile/tests/golden/version-{version}/{name}.iolab.gz"
    ));
    let mut bytes = Vec::new();
    let packed = File::open(&stored).expect("it is stored");
    let mut packed = flate2::read::GzDecoder::new(packed);
    packed.read_to_end(&mut bytes).expect("gzip");
    std::fs::write(to, bytes).expect("room");
}
