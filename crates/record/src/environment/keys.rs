//! Keys of the environment: the name of each, and the type of its value with its text in run files.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use iolab_workload::command_template::Linkage;
use iolab_workload::counters::Traffic;
use iolab_workload::settings::Tool;

/// A key or a family, for lists of all of them.
#[derive(Debug, Clone, Copy)]
pub struct KeyEntry {
    /// Its name; for a family, the variable part is in capitals.
    pub name: &'static str,
    /// The type of its values.
    pub words: &'static str,
    /// Whether the value changes by itself, so that runs on the same machine differ in it.
    pub is_passing: bool,
    /// Meaning of the value, for lists of keys.
    pub doc: &'static str,
}

macro_rules! keys {
    (
        $($name:ident: $kind:ident $(($passing:ident))? = $doc:literal;)*
        --
        $($family:ident: $of:ident of $part:ty = $before:literal $hole:ident $after:literal, $about:literal;)*
    ) => {
        /// The keys by their names.
        #[derive(Debug)]
        pub struct Keys {
            $(#[doc = $doc] pub $name: Key<$kind>,)*
            $(#[doc = $about] pub $family: Family<$part, $of>,)*
        }

        /// The keys.
        pub static KEYS: Keys = Keys {
            $($name: Key { name: Cow::Borrowed(stringify!($name)), kind: PhantomData },)*
            $($family: Family { before: $before, after: $after, kind: PhantomData },)*
        };

        /// All keys, then all families.
        pub static ALL: &[KeyEntry] = &[
            $(KeyEntry {
                name: stringify!($name),
                words: <$kind as ValueType>::WORDS,
                is_passing: {
                    let marks: &[&str] = &[$(stringify!($passing))?];
                    !marks.is_empty()
                },
                doc: $doc,
            },)*
            $(KeyEntry {
                name: concat!($before, stringify!($hole), $after),
                words: <$of as ValueType>::WORDS,
                is_passing: false,
                doc: $about,
            },)*
        ];
    };
}

keys! {
    iolab_version: Text = "version of iolab";
    iolab_build: Text = "`release`, or `debug`, which is slow";
    clock_source: Text = "the clock in use, and why";
    clock_cost_ns: Tenths (passing) = "cost of one time stamp, ns";
    clock_resolution_ns: Tenths (passing) = "step in which time stamps grow, ns";
    host_name: Text = "name of the host";
    machine_vendor: Text = "maker of the machine, as its firmware has it";
    machine_product: Text = "product name of the machine, as its firmware or its device tree has it";
    machine_is_virtual: Flag = "whether a hypervisor is below: what the processor says, elsewhere firmware and device tree";
    cpu_model: Text = "model of the processor; on ARM designer and name of its cores, of all kinds that it has";
    cpu_usable_count: Whole = "CPUs that the process may use";
    cpu_governor: Text = "frequency governor of the first CPU";
    cpu_frequency_min_khz: Whole = "lowest frequency that the governor may choose, kHz";
    cpu_frequency_max_khz: Whole = "highest frequency that the governor may choose, kHz";
    memory_bytes: Bytes = "memory of the machine";
    memory_available_bytes: Bytes (passing) = "memory that programs can have without swapping";
    page_bytes: Bytes = "size of a page of memory";
    huge_page_bytes: Bytes = "size of a transparent huge page: 2 MiB with pages of 4 KiB, 32 MiB with 16 KiB, 512 MiB with 64 KiB";
    transparent_huge_pages: Text = "when the kernel uses huge pages unasked: all settings, the one in force in brackets";
    cache_line_bytes: Bytes = "size of a line of the CPU caches";
    tlb_l1d_reach_bytes: Bytes = "memory that the first level of the data TLB reaches with pages of 4 KiB";
    tlb_l2_reach_bytes: Bytes = "memory that the second level of the TLB reaches with pages of 4 KiB";
    kernel_release: Text = "release of the kernel: `6.12.1`";
    kernel_version: Text = "build of the kernel";
    architecture: Text = "instruction set of the machine: `x86_64`";
    uptime_s: Whole (passing) = "time since the machine started, s";
    io_uring_disabled: Whole = "who may not use io_uring: 0 everyone may, 1 only a group may, 2 no one may";
    file_system: Text = "type of the target's file system";
    mount_point: Text = "where that file system is mounted";
    mount_options: Text = "options of the mount, then of the file system";
    mount_source: Text = "what is mounted there";
    direct_memory_alignment_bytes: Bytes = "alignment of buffers that O_DIRECT needs";
    direct_offset_alignment_bytes: Bytes = "alignment of offsets and lengths that O_DIRECT needs";
    device: Text = "block device of the target, or partition: `nvme0n1p2`";
    device_disk: Text = "the whole disk: `nvme0n1`";
    device_number: Text (passing) = "major and minor number of the whole disk: `259:0`";
    device_model: Text = "model, as the disk reports it";
    device_vendor: Text = "vendor, as the disk reports it";
    device_firmware: Text = "firmware revision of the disk";
    device_id: Text = "digest (FNV-1a) of the WWID, UUID or serial number of the disk, else of path and inode of the file of a loop device; lacks where the kernel names none";
    device_identity: Text (passing) = "of a device that is a target: digest of its size, and of the ids, places and sizes of the layers below, down to the disks; lacks where one cannot be distinguished from others";
    device_partition: Text = "of a partition that is a target: its first byte on its disk, and its bytes: `1048576+20971520`";
    device_removable: Bit = "whether the medium is removable";
    device_rotational: Bit = "whether the disk has platters";
    device_write_cache: Text = "`write back` or `write through`";
    device_flush_counter: Text = "whose counters (`flush_ios`) hold the flushes of that cache: `device`, or `disks` for those at the bottom of it; lacks where nothing counts them";
    device_read_ahead_kib: Whole = "read-ahead of buffered reads, KiB";
    device_queues: Whole = "request queues of the disk; 0 where its driver takes requests without one (zram, device mapper, md)";
    device_requests_max: Whole = "requests that a queue of the disk holds";
    device_request_max_kib: Whole = "largest request that the kernel sends in one piece, KiB";
    device_segments_max: Whole = "pieces of memory that one request may consist of";
    device_logical_block_bytes: Bytes = "smallest unit that can be addressed";
    device_physical_block_bytes: Bytes = "smallest unit that the disk writes without reading first";
    device_scheduler: Text = "I/O scheduler in force";
    device_bytes: Bytes = "size of the whole disk";
    device_transport: Text = "how the disk is attached: `nvme`, `sata`, `virtio`";
    device_stack: Text = "the layers below the device: `dm-0 (crypt) on nvme0n1p2`";
    device_minimum_io_bytes: Bytes = "smallest I/O size that the disk takes without extra work";
    device_optimal_io_bytes: Bytes = "I/O size that the disk prefers";
    device_link: Text = "speed and width of the link now: `16.0 GT/s x4`";
    device_link_best: Text = "the best that the disk can do, if it is known and above `device_link`";
    device_limit_read_bps: Whole = "bytes per second that its control groups let iolab read from the device";
    device_limit_write_bps: Whole = "bytes per second that they let it write";
    device_limit_read_iops: Whole = "reads per second that they allow";
    device_limit_write_iops: Whole = "writes per second that they allow";
    device_link_mb_s: Tenths = "data that the link carries now, MB/s: a ceiling";
    probe_compiler: Text = "the compiler that built the reader, in its own words";
    probe_loader: Text = "the loader that the dynamic build of the reader names";
    model_title: Text = "what the model is, as its definition says";
    model_digest: Text = "digest of the model's definition: FNV-1a with 64 bits";
    model_definition: WholeText (passing) = "text of the model's definition, where that is a file of the user";
    model_block_bytes: Bytes = "smallest unit that the model addresses";
    ranks: Whole = "processes (ranks) that measured together; lacks where there was one, without MPI";
    rank_hosts: Whole = "hosts that they ran on";
    scratch_fill_mb_s: Tenths (passing) = "rate at which the scratch files were filled before the first trial, MB/s; lacks where none were";
    target_name: Text = "what the user calls the target (`--name`), where that is not its path";
    target_path_hex: Hex = "bytes of the target's path, where it is not UTF-8";
    target_file_id: Text (passing) = "of an existing file: digest of its inode, its time of birth or handle, its file system and the devices below; lacks where the file has neither time of birth nor handle";
    target_file_bytes: Bytes (passing) = "of an existing file: its size";
    imported_from: Text (passing) = "the file that an imported run was read from";
    timed_by: Text (passing) = "the command of a run of iolab time, without the files that it wrote";
    --
    cache_bytes: Bytes of Cache = "cache_l" LEVEL "_bytes", "size of a CPU cache of the first CPU; LEVEL is its level, with `d` for data or `i` for instructions where these are separate: `cache_l1d_bytes`, `cache_l2_bytes`";
    peak_read_mb_s: Real of PeakSource = "peak_" SOURCE "_read_mb_s", "ceiling of reads, MB/s; SOURCE is `stated` or `measured`";
    peak_write_mb_s: Real of PeakSource = "peak_" SOURCE "_write_mb_s", "ceiling of writes, MB/s";
    peak_read_iops: Real of PeakSource = "peak_" SOURCE "_read_iops", "ceiling of reads, requests per second";
    peak_write_iops: Real of PeakSource = "peak_" SOURCE "_write_iops", "ceiling of writes, requests per second";
    probe_bytes: Bytes of Linkage = "probe_" LINKAGE "_bytes", "size of a build of the reader; LINKAGE is `static` or `dynamic`";
    program_bytes: Bytes of usize = "program_" NUMBER "_bytes", "size of a file that is executed; NUMBER is its place among the commands, from 1";
    program_path: Text of usize = "program_" NUMBER "_path", "the file that is executed";
    tool_version: Text of Tool = "" TOOL "_version", "version of another tool: `fio_version`";
    tool_path: Text of Tool = "" TOOL "_path", "the program of another tool: `fio_path`";
    of_further_target: Text of TargetFact = "target_" NUMBER_KEY "", "the fact KEY (file system, device, measured ceiling) of a further target; NUMBER is its number in table `target`: `target_1_device`";
}

impl Keys {
    /// The limit of control groups on a kind of traffic with the device.
    pub fn device_limit(&self, what: Traffic) -> &Key<Whole> {
        match what {
            Traffic::ReadBytes => &self.device_limit_read_bps,
            Traffic::WriteBytes => &self.device_limit_write_bps,
            Traffic::Reads => &self.device_limit_read_iops,
            Traffic::Writes => &self.device_limit_write_iops,
        }
    }
}

/// A fact of a further target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFact {
    /// Its number, from 1.
    pub number: usize,
    /// The key of the fact for the first target.
    pub key: String,
}

impl Display for TargetFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.number, self.key)
    }
}

/// Beginnings of key names whose values belong to a target, and not to the machine.
pub(super) const OF_TARGET: [&str; 8] = [
    "file_system", "mount_", "direct_", "device", "peak_measured_", "target_path_hex",
    "target_name", "target_file_",
];

/// A CPU cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the closest to the core.
    pub level: u8,
    /// Kind of content: data, instructions, or both.
    pub holds: Holds,
}

/// The content of a CPU cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Data only.
    Data,
    /// Instructions only.
    Instructions,
    /// Both.
    Both,
}

impl Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.holds {
            Holds::Data => "d",
            Holds::Instructions => "i",
            Holds::Both => "",
        };
        write!(f, "{}{suffix}", self.level)
    }
}

/// Whether the values of a key change by themselves.
pub(super) fn is_passing(name: &str) -> bool {
    ALL.iter()
        .any(|entry| entry.is_passing && entry.name == name)
}

/// Longest text stored, characters: device models and kernel banners are shorter.
const TEXT_MAX: usize = 500;

/// The type of a key's values, with their form in run files.
pub trait ValueType {
    /// The type in memory.
    type Value;
    /// The name of the type in RUNFILE.md.
    const WORDS: &'static str;
    /// Parses a text, which may come from a foreign file; `None` for an invalid one.
    fn read(text: &str) -> Option<Self::Value>;
    /// The text of a value; empty for nothing to store.
    fn write(value: &Self::Value) -> String;
}

/// Types of values, each with its name in RUNFILE.md, how it is read, and how it is written.
macro_rules! values {
    ($($(#[doc = $doc:literal])* $kind:ident($value:ty) = $words:literal, $read:expr, $write:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $kind;

        impl ValueType for $kind {
            type Value = $value;
            const WORDS: &'static str = $words;

            fn read(text: &str) -> Option<$value> {
                let read: fn(&str) -> Option<$value> = $read;
                read(text)
            }

            fn write(value: &$value) -> String {
                let write: fn(&$value) -> String = $write;
                write(value)
            }
        }
    )*};
}

values! {
    /// Text without control characters, of bounded length.
    Text(String) = "text", as_it_is, |text| plain(text);
    /// The text of a whole file, as it is.
    WholeText(String) = "text of a file", as_it_is, String::clone;
    /// Bytes that need not be UTF-8, of any length.
    Hex(Vec<u8>) = "hexadecimal", from_hex, |bytes| to_hex(bytes);
    /// A size; the name ends in `_bytes`.
    Bytes(u64) = "bytes", parsed, u64::to_string;
    /// Another integer; the name contains its unit.
    Whole(u64) = "whole number", parsed, u64::to_string;
    /// A boolean.
    Flag(bool) = "`true` or `false`", parsed, bool::to_string;
    /// A boolean as the kernel writes it.
    Bit(bool) = "0 or 1", bit, |on| u8::from(*on).to_string();
    /// A number with full precision; the name contains its unit.
    Real(f64) = "number", finite, f64::to_string;
    /// A number with one decimal place; the name contains its unit.
    Tenths(f64) = "number", finite, |number| format!("{number:.1}");
}

fn as_it_is(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn plain(value: &str) -> String {
    let plain = value.trim().chars().filter(|c| !c.is_control());
    plain.take(TEXT_MAX).collect()
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn finite(text: &str) -> Option<f64> {
    parsed(text).filter(|number: &f64| number.is_finite())
}

fn bit(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key with values of one type.
#[derive(Debug)]
pub struct Key<K> {
    name: Cow<'static, str>,
    kind: PhantomData<fn() -> K>,
}

impl<K: ValueType> Key<K> {
    /// Its name, including the unit.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Keys whose names differ in one part.
#[derive(Debug)]
pub struct Family<A, K> {
    before: &'static str,
    after: &'static str,
    kind: PhantomData<fn(A) -> K>,
}

impl<A: Display, K: ValueType> Family<A, K> {
    /// The key for one value of that part.
    pub fn of(&self, part: A) -> Key<K> {
        Key {
            name: format!("{}{part}{}", self.before, self.after).into(),
            kind: PhantomData,
        }
    }
}

iolab_workload::named! {
    /// The source of a device's ceiling.
    pub enum PeakSource: "source of a ceiling" {
        /// The user's `--peak`.
        Stated = "stated",
        /// A probe before the run (`--peak measure`).
        Measured = "measured",
        /// The rate of the device's link.
        Link = "link",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_name_bytes() {
        for (place, entry) in ALL.iter().enumerate() {
            let twice = ALL[..place].iter().any(|other| other.name == entry.name);
            assert!(!twice, "{} occurs twice", entry.name);
            let is_size = entry.words == Bytes::WORDS;
            assert_eq!(entry.name.ends_with("_bytes"), is_size, "{}", entry.name);
        }
    }

    #[test]
    fn families_name_their_members() {
        let l1d = Cache {
            level: 1,
            holds: Holds::Data,
        };
        assert_eq!(KEYS.cache_bytes.of(l1d).name(), "cache_l1d_bytes");
        let stated = KEYS.peak_read_mb_s.of(PeakSource::Stated);
        assert_eq!(stated.name(), "peak_stated_read_mb_s");
        assert_eq!(KEYS.program_path.of(1).name(), "program_1_path");
        assert_eq!(KEYS.tool_version.of(Tool::IOLAB).name(), "iolab_version");
        let further = TargetFact {
            number: 1,
            key: KEYS.device.name().to_owned(),
        };
        assert_eq!(KEYS.of_further_target.of(further).name(), "target_1_device");
    }

    #[test]
    fn text_is_plain_and_of_bounded_length() {
        let of = |text: &str| Text::write(&text.to_owned());
        assert_eq!(of("  x\u{1b}[31my\n"), "x[31my");
        assert_eq!(of(" \n"), "");
        assert_eq!(of(&"z".repeat(9_999)).len(), TEXT_MAX);
    }

    #[test]
    fn any_bytes_come_back() {
        let bytes = b"/a \xff\x00\xfe".to_vec();
        let hex = Hex::write(&bytes);
        assert_eq!(hex, "2f6120ff00fe");
        assert_eq!(Hex::read(&hex), Some(bytes));
        let long = vec![7; 4_096];
        assert_eq!(Hex::read(&Hex::write(&long)), Some(long));
        for nonsense in ["0", "0g", "é"] {
            assert_eq!(Hex::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn invalid_values_read_as_none() {
        for text in ["", "4k", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(Bytes::read(text), None, "{text}");
        }
        for text in ["", "NaN", "inf", "x"] {
            assert_eq!(Tenths::read(text), None, "{text}");
        }
        assert_eq!((Flag::read("1"), Bit::read("true")), (None, None));
    }

    #[test]
    fn values_are_written_as_run_files_have_them() {
        assert_eq!(Bytes::write(&17_179_869_184), "17179869184");
        assert_eq!(
            (Flag::write(&true), Bit::write(&true)),
            ("true".into(), "1".into())
        );
        assert_eq!(
            (Real::write(&510.0), Real::write(&0.25)),
            ("510".into(), "0.25".into())
        );
        assert_eq!(Tenths::write(&600.0), "600.0");
    }
}
