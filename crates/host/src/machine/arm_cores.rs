//! The names of ARM cores by the numbers in their main ID register (MIDR_EL1), which `/proc/cpuinfo` shows.
//! Sources: arch/arm64/include/asm/cputype.h of Linux and the reference manuals of the cores.

use iolab_workload::table;

/// A number and its name.
type Named = (u32, &'static str);

/// Designers, each with its cores by part number.
const DESIGNERS: &[(Named, &[Named])] = &table! {
    ((0x41, "Arm"), &[
        (0xd03, "Cortex-A53"), (0xd04, "Cortex-A35"), (0xd05, "Cortex-A55"), (0xd07, "Cortex-A57"), (0xd08, "Cortex-A72"),
        (0xd09, "Cortex-A73"), (0xd0a, "Cortex-A75"), (0xd0b, "Cortex-A76"), (0xd0c, "Neoverse-N1"), (0xd0d, "Cortex-A77"),
        (0xd0e, "Cortex-A76AE"), (0xd40, "Neoverse-V1"), (0xd41, "Cortex-A78"), (0xd42, "Cortex-A78AE"), (0xd44, "Cortex-X1"),
        (0xd46, "Cortex-A510"), (0xd47, "Cortex-A710"), (0xd48, "Cortex-X2"), (0xd49, "Neoverse-N2"), (0xd4a, "Neoverse-E1"),
        (0xd4b, "Cortex-A78C"), (0xd4c, "Cortex-X1C"), (0xd4d, "Cortex-A715"), (0xd4e, "Cortex-X3"), (0xd4f, "Neoverse-V2"),
        (0xd80, "Cortex-A520"), (0xd81, "Cortex-A720"), (0xd82, "Cortex-X4"), (0xd83, "Neoverse-V3AE"), (0xd84, "Neoverse-V3"),
        (0xd85, "Cortex-X925"), (0xd87, "Cortex-A725"), (0xd8e, "Neoverse-N3")
    ]);
    ((0x42, "Broadcom"), &[(0x516, "ThunderX2")]);
    ((0x43, "Cavium"), &[
        (0x0a1, "ThunderX"), (0x0a2, "ThunderX-81xx"), (0x0a3, "ThunderX-83xx"), (0x0af, "ThunderX2"), (0x0b8, "ThunderX3")
    ]);
    ((0x46, "Fujitsu"), &[(0x001, "A64FX")]);
    ((0x48, "HiSilicon"), &[(0xd01, "TaiShan v110"), (0xd02, "TaiShan v120")]);
    ((0x4e, "NVIDIA"), &[(0x003, "Denver 2"), (0x004, "Carmel"), (0x010, "Olympus")]);
    ((0x50, "APM"), &[(0x000, "X-Gene")]);
    ((0x51, "Qualcomm"), &[
        (0x001, "Oryon"), (0x800, "Kryo 2xx Gold"), (0x801, "Kryo 2xx Silver"), (0x802, "Kryo 3xx Gold"),
        (0x803, "Kryo 3xx Silver"), (0x804, "Kryo 4xx Gold"), (0x805, "Kryo 4xx Silver"), (0xc00, "Falkor")
    ]);
    ((0x61, "Apple"), &[
        (0x022, "Icestorm (M1)"), (0x023, "Firestorm (M1)"), (0x024, "Icestorm (M1 Pro)"), (0x025, "Firestorm (M1 Pro)"),
        (0x028, "Icestorm (M1 Max)"), (0x029, "Firestorm (M1 Max)"), (0x032, "Blizzard (M2)"), (0x033, "Avalanche (M2)"),
        (0x034, "Blizzard (M2 Pro)"), (0x035, "Avalanche (M2 Pro)"), (0x038, "Blizzard (M2 Max)"), (0x039, "Avalanche (M2 Max)")
    ]);
    ((0x6d, "Microsoft"), &[(0xd49, "Azure Cobalt 100")]);
    ((0x70, "Phytium"), &[(0x662, "FTC662"), (0x663, "FTC663"), (0x862, "FTC862")]);
    ((0xc0, "Ampere"), &[(0xac3, "Ampere-1"), (0xac4, "Ampere-1A")]);
};

/// Name of a core. A core that is too new for this table keeps its numbers.
pub(super) fn name(implementer: u32, part: u32) -> String {
    let designer = DESIGNERS
        .iter()
        .find(|((number, _), _)| *number == implementer);
    let Some(((_, designer), cores)) = designer else {
        return format!("ARM implementer {implementer:#04x}, part {part:#05x}");
    };
    match cores.iter().find(|(number, _)| *number == part) {
        Some((_, core)) => format!("{designer} {core}"),
        None => format!("{designer} part {part:#05x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_cores_have_names_unknown_ones_numbers() {
        assert_eq!(name(0x41, 0xd0c), "Arm Neoverse-N1");
        assert_eq!(name(0x41, 0xfff), "Arm part 0xfff");
        assert_eq!(name(0x07, 0x1), "ARM implementer 0x07, part 0x001");
    }
}
