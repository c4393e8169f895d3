//! Paths as names: their ends distinguish them.

/// Removes the folder that all these paths begin with. Leaves the names unchanged if any is not a path.
pub(super) fn leave_out_common(names: &mut [String]) {
    let Some(folder) = common(names).map(str::to_owned) else {
        return;
    };
    for name in names {
        if let Some(rest) = name.strip_prefix(&*folder) {
            *name = rest.to_owned();
        }
    }
}

/// The longest folder that all names lie in, below the root; `None` without one.
fn common(names: &[String]) -> Option<&str> {
    let mut all = names.iter().map(String::as_str);
    let folder_of = |path: &str| path.rfind('/').map_or(0, |slash| slash + 1);
    let first = all.next()?;
    let mut common = &first[..folder_of(first)];
    for part in all {
        let shared = common.bytes().zip(part.bytes());
        let shared = shared.take_while(|(one, other)| one == other).count();
        // A slash is one byte, and ends a folder in both.
        let end = common.as_bytes()[..shared]
            .iter()
            .rposition(|byte| *byte == b'/');
        common = &common[..end.map_or(0, |slash| slash + 1)];
    }
    (common.len() > 1).then_some(common)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<const N: usize>(names: [&str; N]) -> [String; N] {
        let mut names = names.map(str::to_owned);
        leave_out_common(&mut names);
        names
    }

    #[test]
    fn common_folders_are_left_out() {
        assert_eq!(shown(["/mnt/a", "/mnt/disks/b"]), ["a", "disks/b"]);
        assert_eq!(shown(["/dev/sda", "/dev/sdb"]), ["sda", "sdb"]);
        // Half of a name is not a folder, and the root does not count.
        assert_eq!(shown(["/mnt/one", "/mnt/only"]), ["one", "only"]);
        assert_eq!(shown(["/mnt", "/data"]), ["/mnt", "/data"]);
        assert_eq!(shown(["/mnt/a", "WD-Red"]), ["/mnt/a", "WD-Red"]);
        assert_eq!(shown(["seq", "rand"]), ["seq", "rand"]);
        assert_eq!(shown(["/größe/ä", "/größe/ö"]), ["ä", "ö"]);
    }
}
