//! The layers of an overlay, as the options of its mount name them.
//! Sources: Documentation/filesystems/overlayfs.rst and fs/overlayfs/params.c of Linux.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::escapes::unescape;

/// The folders that an overlay is made of, by the names they were mounted by. Those need not mean the same to this
/// process: they may be relative, or those of another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The one that is written to; `None` where nothing can be written.
    pub upper: Option<PathBuf>,
    /// Those that are only read, the topmost first.
    pub lower: Vec<PathBuf>,
}

impl Layers {
    /// Reads the options of an overlay's superblock, as `mountinfo` has them, escapes included.
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

    /// All of them, in the order in which a file is looked for.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.upper.iter().chain(&self.lower).map(PathBuf::as_path)
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Folders between colons. A backslash takes its meaning from the character behind it; Linux 6.5 to 6.7 write a colon
/// within a name as `\072` instead.
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
    // Two colons stand before layers that are asked for data alone.
    found.retain(|name| !name.is_empty());
    found.into_iter().map(path).collect()
}

/// The first character of a field of `mountinfo`, and how many bytes it takes there.
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

    /// As Linux 6.18 prints them.
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
    fn colons_part_layers_unless_they_belong_to_a_name() {
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
