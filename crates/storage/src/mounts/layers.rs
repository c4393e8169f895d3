//! The layers of an overlay, as the options of its mount name them.
//! Sources: Documentation/filesystems/overlayfs.rst and fs/overlayfs/params.c of Linux.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::unescape;

/// Folders that an overlay is made of, by the names they were mounted by. This process may know them by other
/// names: the names may be relative, or from another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// Layer that is written to; `None` if the overlay is read-only.
    pub upper: Option<PathBuf>,
    /// Read-only layers, topmost first.
    pub lower: Vec<PathBuf>,
}

impl Layers {
    /// Parses the options of an overlay's superblock in `mountinfo`, escapes included.
    pub(super) fn of_options(options: &[u8]) -> Self {
        let mut layers = Self::default();
        for option in options.split(|byte| *byte == b',') {
            let Some(at) = option.iter().position(|byte| *byte == b'=') else {
                continue;
            };
            let value = &option[at + 1..];
            match &option[..at] {
                b"upperdir" => layers.upper = folders(value).into_iter().next(),
                b"lowerdir" => layers.lower.extend(folders(value)),
                // One folder each, without colons and escapes of the mount's own.
                b"lowerdir+" | b"datadir+" => layers.lower.push(path(unescape(value))),
                _ => {}
            }
        }
        layers
    }

    /// All layers, in lookup order.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.upper.iter().chain(&self.lower).map(PathBuf::as_path)
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Folders between colons. A backslash escapes the next character; Linux 6.5 to 6.7 write a colon within a name
/// as `\072` instead.
fn folders(value: &[u8]) -> Vec<PathBuf> {
    const BACKSLASH: &[u8] = b"\\134";
    let mut found = vec![Vec::new()];
    let mut rest = value;
    while let Some(&first) = rest.first() {
        if first == b':' {
            found.push(Vec::new());
            rest = &rest[1..];
            continue;
        }
        let skip = if rest.starts_with(BACKSLASH) && rest.len() > BACKSLASH.len() {
            BACKSLASH.len()
        } else {
            0
        };
        let (byte, length) = one(&rest[skip..]);
        if let Some(name) = found.last_mut() {
            name.push(byte);
        }
        rest = &rest[skip + length..];
    }
    // Two colons precede layers that hold only data.
    found.retain(|name| !name.is_empty());
    found.into_iter().map(path).collect()
}

/// First character of a field of `mountinfo`, and its length there, bytes.
fn one(field: &[u8]) -> (u8, usize) {
    let escaped = field.get(..4).map(unescape);
    match escaped.as_deref() {
        Some([byte]) => (*byte, 4),
        _ => (field.first().copied().unwrap_or_default(), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(options: &str) -> Vec<PathBuf> {
        Layers::of_options(options.as_bytes()).lower
    }

    /// Options as Linux 6.18 prints them.
    #[test]
    fn layers_are_read_as_linux_prints_them() {
        let layers =
            Layers::of_options(b"rw,lowerdir=l,upperdir=/tmp/u\\040p,workdir=w,uuid=on,xino=off");
        assert_eq!(layers.upper.as_deref(), Some(Path::new("/tmp/u p")));
        assert_eq!(layers.lower, [Path::new("l")]);
        assert_eq!(layers.all().count(), 2);
        let escaped =
            r"ro,lowerdir=/t/x\040y:/t/a\134:b:/t/c\134\054d:/t/e\134\134f,redirect_dir=on";
        let expected = ["/t/x y", "/t/a:b", "/t/c,d", r"/t/e\f"].map(PathBuf::from);
        assert_eq!(lower(escaped), expected);
        let one_by_one = r"ro,lowerdir+=/t/a:b,lowerdir+=/t/e\134f,datadir+=/t/l,metacopy=on";
        let expected = ["/t/a:b", r"/t/e\f", "/t/l"].map(PathBuf::from);
        assert_eq!(lower(one_by_one), expected);
    }

    #[test]
    fn colons_separate_layers_unless_escaped() {
        assert_eq!(
            lower("lowerdir=/a:/b::/c"),
            ["/a", "/b", "/c"].map(PathBuf::from)
        );
        assert_eq!(
            lower(r"lowerdir=/a\072b:/c"),
            ["/a:b", "/c"].map(PathBuf::from)
        );
        assert_eq!(lower(r"lowerdir=/a\134"), [PathBuf::from(r"/a\")]);
        assert_eq!(lower("rw,lowerdir,index=off"), [] as [PathBuf; 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_options_are_read(options in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            let text = [b"lowerdir=", &options[..]].concat();
            for layer in Layers::of_options(&text).all() {
                proptest::prop_assert!(!layer.as_os_str().is_empty());
            }
        }
    }
}
