//! The target's path as the user named it, byte for byte: the text of the run file cannot hold every one.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::record::RunRecord;

/// Key in the environment of the bytes of a path that is not UTF-8, in hexadecimal.
const KEY: &str = "target_path_hex";

/// The entry of the environment that keeps a path which text does not; `None` where text does.
pub(super) fn entry(path: &Path) -> Option<(String, String)> {
    if path.to_str().is_some() {
        return None;
    }
    let mut hex = String::new();
    for byte in path.as_os_str().as_bytes() {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Some((KEY.to_owned(), hex))
}

/// The path of the target of a run.
pub fn target_path(record: &RunRecord) -> PathBuf {
    let kept = record.environment.iter().find(|(key, _)| key == KEY);
    kept.and_then(|(_, hex)| bytes(hex)).map_or_else(
        || record.run.target.clone().into(),
        |bytes| OsString::from_vec(bytes).into(),
    )
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = hex.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_text_needs_none() {
        let path = PathBuf::from(OsString::from_vec(b"/a \xff\x00\xfe".to_vec()));
        let (_, hex) = entry(&path).expect("not UTF-8");
        assert_eq!(hex, "2f6120ff00fe");
        assert_eq!(bytes(&hex), Some(path.into_os_string().into_vec()));
        assert_eq!(entry(Path::new("/ä")), None);
        for nonsense in ["0", "0g", "é"] {
            assert_eq!(bytes(nonsense), None, "{nonsense}");
        }
    }
}
