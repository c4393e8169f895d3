//! Memory of the machine as a whole: `/proc/meminfo`, see proc_meminfo(5).

/// Value of one line, bytes: `MemTotal`, `MemAvailable`, `Hugepagesize`. `None` where the kernel does not
/// report it.
pub fn bytes(name: &str) -> Option<u64> {
    of(&std::fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// Dirty bytes of the page cache; `None` where the kernel does not report them.
pub fn dirty_bytes() -> Option<u64> {
    Some(bytes("Dirty")?.saturating_add(bytes("Writeback")?))
}

/// Free reserved huge pages (hugetlb), bytes; `None` where the kernel does not report them.
pub fn free_huge_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let pages: u64 = value(&text, "HugePages_Free")?.parse().ok()?;
    pages.checked_mul(of(&text, "Hugepagesize")?)
}

/// Value in a text of `meminfo`, bytes; its unit kB means 1024 bytes.
fn of(text: &str, name: &str) -> Option<u64> {
    let kib = value(text, name)?.strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_bytes() {
        let text = "MemTotal:       24576000 kB\nMemFree: 7 kB\nHugePages_Total:       3\n";
        assert_eq!(of(text, "MemTotal"), Some(24_576_000 * 1024));
        assert_eq!(of(text, "MemFree"), Some(7 * 1024));
        assert_eq!(of(text, "Mem"), None);
        // A count, not a size.
        assert_eq!(of(text, "HugePages_Total"), None);
        assert_eq!(value(text, "HugePages_Total"), Some("3"));
        assert_eq!(of("MemTotal: 99999999999999999999 kB", "MemTotal"), None);
    }
}
