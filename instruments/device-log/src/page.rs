//! Log pages of NVMe drives.
//!
//! Sources: NVM Express Base Specification 2.0c, section 5.16.1.3 (SMART / Health Information); Open Compute Project, Datacenter NVMe SSD
//! Specification 2.0, section 4.8.5 (SMART / Health Information Extended).

use iolab_record::DriveLog;

/// A page, or its first 512 bytes.
pub(crate) type Page = [u8; 512];

/// SMART / Health Information.
pub(crate) const HEALTH: u8 = 0x02;
/// SMART / Health Information Extended. Drives without it may have another page of this number.
pub(crate) const EXTENDED: u8 = 0xc0;

/// Number at the end of the extended page that tells it from other pages.
const EXTENDED_GUID: u128 = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5;

/// Zero degrees Celsius, thousandths of a kelvin.
const ZERO_CELSIUS: u64 = 273_150;

/// A number of `N` bytes at this offset, the least significant first.
fn number<const N: usize>(page: &Page, at: usize) -> u128 {
    let bytes = page[at..at + N].iter().rev();
    bytes.fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

/// Whether a page is the extended one.
pub(crate) fn is_extended(page: &Page) -> bool {
    number::<16>(page, 496) == EXTENDED_GUID
}

/// The counts of the health page and of the extended page.
pub(crate) fn counts(health: &Page, extended: Option<&Page>) -> DriveLog {
    let fits = |number: u128| u64::try_from(number).ok();
    let units = |at| fits(number::<16>(health, at))?.checked_mul(DriveLog::UNIT);
    let count = |at| fits(number::<4>(health, at));
    let kelvin = fits(number::<2>(health, 1));
    DriveLog {
        host_read_bytes: units(32),
        host_write_bytes: units(48),
        media_write_bytes: extended.and_then(|page| fits(number::<16>(page, 0))),
        warning_min: count(192),
        critical_min: count(196),
        light_throttles: count(216),
        heavy_throttles: count(220),
        light_throttle_s: count(224),
        heavy_throttle_s: count(228),
        throttle_events: extended.map(|page| page[96].into()),
        after_millidegrees: kelvin.and_then(|kelvin| (kelvin * 1000).checked_sub(ZERO_CELSIUS)),
        ..DriveLog::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these numbers at these offsets.
    fn page(numbers: &[(usize, &[u8])]) -> Page {
        let mut page = [0; 512];
        for (at, bytes) in numbers {
            page[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        page
    }

    /// A drive at 43 degrees Celsius that has throttled itself.
    fn health(written: u128, light_s: u32) -> Page {
        page(&[
            (1, &316_u16.to_le_bytes()),
            (32, &7_u128.to_le_bytes()),
            (48, &written.to_le_bytes()),
            (192, &11_u32.to_le_bytes()),
            (196, &12_u32.to_le_bytes()),
            (216, &13_u32.to_le_bytes()),
            (220, &14_u32.to_le_bytes()),
            (224, &light_s.to_le_bytes()),
            (228, &16_u32.to_le_bytes()),
        ])
    }

    /// The extended page of a drive, with the bytes of its number in the order of the specification.
    fn extended(written: u128, events: u8) -> Page {
        page(&[
            (0, &written.to_le_bytes()),
            (96, &[events, 1]),
            (
                496,
                &[
                    0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9,
                    0x14, 0xd5, 0xaf,
                ],
            ),
        ])
    }

    #[test]
    fn counts_lie_where_the_specifications_say() {
        let counts = counts(&health(1000, 15), Some(&extended(1 << 40, 17)));
        let expected = DriveLog {
            host_read_bytes: Some(7 * 512_000),
            host_write_bytes: Some(512_000_000),
            media_write_bytes: Some(1 << 40),
            warning_min: Some(11),
            critical_min: Some(12),
            light_throttles: Some(13),
            heavy_throttles: Some(14),
            light_throttle_s: Some(15),
            heavy_throttle_s: Some(16),
            throttle_events: Some(17),
            after_millidegrees: Some(42_850),
            ..DriveLog::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_trial_counts_from_before_to_after() {
        let before = counts(&health(1000, 15), Some(&extended(5000, 17)));
        let after = counts(&health(1200, 46), Some(&extended(9000, 17)));
        let trial = after.since(&before);
        assert_eq!(trial.host_write_bytes, Some(200 * DriveLog::UNIT));
        assert_eq!(trial.media_write_bytes, Some(4000));
        assert_eq!(
            (trial.throttled_ns(), trial.throttles()),
            (31_000_000_000, 0)
        );
        assert_eq!(trial.before_millidegrees, Some(42_850));
        // A drive that was formatted, or a count that wrapped.
        let shrunk = before.since(&after);
        assert_eq!(
            (shrunk.host_write_bytes, shrunk.media_write_bytes),
            (None, None)
        );
        assert_eq!(shrunk.host_read_bytes, Some(0));
    }

    #[test]
    fn numbers_beyond_any_drive_are_unknown() {
        let broken = [0xff; 512];
        let counts = counts(&broken, Some(&broken));
        assert_eq!(
            (counts.host_write_bytes, counts.media_write_bytes),
            (None, None)
        );
        assert!(!is_extended(&broken));
        assert!(is_extended(&extended(0, 0)));
        let cold = page(&[(1, &[0, 0])]);
        assert_eq!(super::counts(&cold, None).after_millidegrees, None);
    }
}
