//! Names of the files of a report.

use super::Input;

/// The id of the section of a run.
pub(super) fn id(index: usize) -> String {
    format!("e{}", index + 1)
}

/// Common beginning of the file names of a run, which keeps runs of one experiment apart.
pub(super) fn stem(index: usize, input: &Input) -> String {
    let name = file_name(&input.run.record().experiment.name);
    format!("{}-{name}", id(index))
}

/// The name of an experiment as a name for files: letters, digits, dots, dashes and underscores.
pub(super) fn file_name(name: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let name: String = name
        .chars()
        .take(80)
        .map(|c| if harmless(c) { c } else { '_' })
        .collect();
    match name.trim_start_matches('-') {
        "" => "experiment".to_owned(),
        rest => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_leads_nowhere_else() {
        for (name, file) in [
            ("read-size", "read-size"),
            ("../../etc/passwd", "______etc_passwd"),
            ("--help", "help"),
            ("", "experiment"),
            ("a\0b/c", "a_b_c"),
        ] {
            assert_eq!(file_name(name), file);
        }
        assert_eq!(file_name(&"x".repeat(9999)).len(), 80);
    }
}
