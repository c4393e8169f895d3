//! Comparison of two different identity texts of a target, from the run file and from now: whether the targets differ.

use iolab_record::environment::{BY_NUMBER, IDENTITY_FORM, UNTIL_RESTART};

/// Evidence that a target is not the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// A different target.
    Other(String),
    /// Not decidable from the texts.
    Unknown(&'static str),
}

/// An identity that this version of iolab cannot compare.
const OTHER_FORM: Difference = Difference::Unknown(
    "the version of iolab that made the run file identified targets in another way",
);

/// The difference of two texts of files.
pub(super) fn of_files(before: &str, now: &str) -> Difference {
    let parts = |text| str::strip_prefix(text, IDENTITY_FORM)?.split_once('-');
    let (Some(before), Some(now)) = (parts(before), parts(now)) else {
        return OTHER_FORM;
    };
    if before.0 != now.0 {
        return Difference::Other("inode or time of birth of the file differ".to_owned());
    }
    match [before.1, now.1]
        .iter()
        .any(|place| place.starts_with(BY_NUMBER))
    {
        true => Difference::Unknown(
            "the kernel has given its file system another number since, and no id identifies that or a device below it",
        ),
        false => Difference::Other("its file system, or a device below it, differs".to_owned()),
    }
}

/// Whether the identity of a target ends with a restart of the machine, or once it is attached or mounted anew.
pub(super) fn is_passing(identity: &str) -> bool {
    let place = || identity.strip_prefix(IDENTITY_FORM)?.split_once('-');
    identity.starts_with(UNTIL_RESTART)
        || place().is_some_and(|(_, place)| place.starts_with(BY_NUMBER))
}

/// The difference of two texts of devices.
pub(super) fn of_devices(before: &str, now: &str) -> Difference {
    let bare = |text| str::strip_prefix(text, UNTIL_RESTART).unwrap_or(text);
    let is_known = |text| bare(text).starts_with(IDENTITY_FORM);
    let is_passing = |text: &str| text.starts_with(UNTIL_RESTART);
    if !is_known(before) || !is_known(now) {
        return OTHER_FORM;
    }
    match is_passing(before) || is_passing(now) {
        true => Difference::Unknown(
            "it, or a device below it, has no id of its own, and was attached anew since, or the machine restarted",
        ),
        false => {
            Difference::Other("its place on the disks, or what lies below it, differs".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pass_and_ids_last() {
        assert!(["boot-2-a", "2-a-number-x"].into_iter().all(is_passing));
        assert!(!["2-a", "2-a-x"].into_iter().any(is_passing));
    }

    fn is_other(found: &Difference) -> bool {
        matches!(found, Difference::Other(_))
    }

    #[test]
    fn files_differ_only_if_all_numbers_are_certain() {
        let of = |before, now| is_other(&of_files(before, now));
        assert!(of("2-a-x", "2-b-x"));
        assert!(of("2-a-number-x", "2-b-number-y"), "another inode");
        assert!(of("2-a-x", "2-a-y"));
        for (before, now) in [
            ("2-a-number-x", "2-a-number-y"),
            ("2-a-x", "2-a-number-y"),
            ("2-a-number-x", "2-a-y"),
        ] {
            assert!(!of(before, now), "{before} {now}");
        }
        assert_eq!(of_files("0123456789abcdef", "2-a-x"), OTHER_FORM);
        assert_eq!(of_files("2-a-x", "3-a-x"), OTHER_FORM);
    }

    #[test]
    fn devices_differ_only_if_all_layers_have_ids() {
        let of = |before, now| is_other(&of_devices(before, now));
        assert!(of("2-a", "2-b"));
        for (before, now) in [
            ("boot-2-a", "boot-2-b"),
            ("2-a", "boot-2-a"),
            ("boot-2-a", "2-a"),
        ] {
            assert!(!of(before, now), "{before} {now}");
        }
        for earlier in ["0123456789abcdef", "boot-0123456789abcdef"] {
            assert_eq!(of_devices(earlier, "2-a"), OTHER_FORM);
            assert_eq!(of_devices(earlier, "boot-2-a"), OTHER_FORM);
        }
    }
}
