//! Whether a program is linked dynamically: the program header of type `PT_INTERP` names its loader.
//!
//! Layout: System V Application Binary Interface, chapter 4 and 5 (ELF-64); elf(5).

/// Program header of the loader's path.
const PT_INTERP: u32 = 3;
/// Longest path of a loader that is believed.
const PATH_MAX: usize = 4096;

/// A 64-bit ELF file, either byte order.
struct Elf<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

/// The loader that a 64-bit ELF program names; `None` if it names none, as a statically linked program.
///
/// # Errors
/// The fault of the file, in a few words.
pub(crate) fn interpreter(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    let elf = Elf::new(bytes)?;
    let header = |index: u64| -> Option<u64> {
        let size = u64::from(elf.u16(54)?);
        let offset = elf.u64(32)?.checked_add(index.checked_mul(size)?)?;
        (size >= 56).then_some(offset)
    };
    let cut = "its program headers lie outside of it";
    let count = elf.u16(56).ok_or(cut)?;
    // The number is then stored elsewhere; no linker writes that many for a small program.
    if count == u16::MAX {
        return Err("it has too many program headers");
    }
    for index in 0..u64::from(count) {
        let at = header(index).ok_or(cut)?;
        if elf.u32(at).ok_or(cut)? == PT_INTERP {
            return elf
                .path(at)
                .map(Some)
                .ok_or("its loader has no readable name");
        }
    }
    Ok(None)
}

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let big_endian = match bytes.get(..6) {
            Some([0x7f, b'E', b'L', b'F', 2, 1]) => false,
            Some([0x7f, b'E', b'L', b'F', 2, 2]) => true,
            Some([0x7f, b'E', b'L', b'F', ..]) => return Err("it is not a 64-bit ELF file"),
            _ => return Err("it is not an ELF file"),
        };
        let elf = Self { bytes, big_endian };
        match elf.u16(16) {
            // ET_EXEC, ET_DYN
            Some(2 | 3) => Ok(elf),
            _ => Err("it is not an ELF program"),
        }
    }

    fn field<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let start = usize::try_from(offset).ok()?;
        let mut field: [u8; N] = self
            .bytes
            .get(start..start.checked_add(N)?)?
            .try_into()
            .ok()?;
        if self.big_endian {
            field.reverse();
        }
        Some(field)
    }

    fn u16(&self, offset: u64) -> Option<u16> {
        self.field(offset).map(u16::from_le_bytes)
    }

    fn u32(&self, offset: u64) -> Option<u32> {
        self.field(offset).map(u32::from_le_bytes)
    }

    fn u64(&self, offset: u64) -> Option<u64> {
        self.field(offset).map(u64::from_le_bytes)
    }

    /// The text that the program header at `header` points to, up to its NUL.
    fn path(&self, header: u64) -> Option<String> {
        let start = usize::try_from(self.u64(header.checked_add(8)?)?).ok()?;
        let length = usize::try_from(self.u64(header.checked_add(32)?)?).ok()?;
        let bytes = self
            .bytes
            .get(start..start.checked_add(length.min(PATH_MAX))?)?;
        let path = bytes.split(|byte| *byte == 0).next()?;
        let path = std::str::from_utf8(path).ok()?;
        (!path.is_empty()).then(|| path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A program with one header of this type, which points to `path`.
    fn program(kind: u32, path: &str, big_endian: bool) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1 + u8::from(big_endian)]);
        let mut put = |offset: usize, value: &[u8]| {
            let mut value = value.to_vec();
            if big_endian {
                value.reverse();
            }
            bytes[offset..offset + value.len()].copy_from_slice(&value);
        };
        put(16, &3u16.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(64, &kind.to_le_bytes());
        put(72, &120u64.to_le_bytes());
        put(96, &(path.len() as u64 + 1).to_le_bytes());
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn the_loader_is_found_in_both_byte_orders() {
        for big_endian in [false, true] {
            let dynamic = program(PT_INTERP, "/lib/ld.so.1", big_endian);
            assert_eq!(interpreter(&dynamic), Ok(Some("/lib/ld.so.1".to_owned())));
            assert_eq!(
                interpreter(&program(1, "/lib/ld.so.1", big_endian)),
                Ok(None)
            );
        }
    }

    #[test]
    fn other_files_than_programs_are_named() {
        assert_eq!(interpreter(b"#!/bin/sh\n"), Err("it is not an ELF file"));
        assert_eq!(
            interpreter(b"\x7fELF\x01\x01"),
            Err("it is not a 64-bit ELF file")
        );
        let mut object = program(PT_INTERP, "/lib/ld.so.1", false);
        object[16] = 1;
        assert_eq!(interpreter(&object), Err("it is not an ELF program"));
        let mut many = program(PT_INTERP, "/lib/ld.so.1", false);
        many[56..58].copy_from_slice(&[0xff, 0xff]);
        assert!(interpreter(&many).is_err());
        assert!(interpreter(&program(PT_INTERP, "", false)).is_err());
    }

    proptest! {
        #[test]
        fn a_truncated_program_has_no_loader_or_fails(cut in 0usize..133) {
            let whole = program(PT_INTERP, "/lib/ld.so.1", false);
            prop_assert!(!matches!(interpreter(&whole[..cut.min(120)]), Ok(Some(_))));
            let _ = interpreter(&whole[..cut]);
        }

        #[test]
        fn hostile_bytes_never_panic(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            at in 0usize..130,
            value: u8,
            big_endian: bool,
        ) {
            let _ = interpreter(&noise);
            let mut bytes = program(PT_INTERP, "/lib/ld.so.1", big_endian);
            let tail = bytes.len().min(6 + noise.len());
            bytes[6..tail].copy_from_slice(&noise[..tail - 6]);
            bytes[16..18].copy_from_slice(if big_endian { &[0, 3] } else { &[3, 0] });
            let _ = interpreter(&bytes);
            let mut bytes = program(PT_INTERP, "/lib/ld.so.1", big_endian);
            bytes[at] = value;
            let _ = interpreter(&bytes);
        }
    }
}
