//! Remedies of errors, rewritten from options of the command line to entries of a TOML definition.

use iolab_workload::Error;
use iolab_workload::settings::Setting;

/// The error with its remedy in the words of a TOML file: the option `--set bs=4k` becomes `bs = "4k"`. Options that do not
/// set a setting stay as they are.
pub(super) fn in_definition(error: Error) -> Error {
    match error.remedy().map(entries) {
        Some(remedy) => error.hint(remedy),
        None => error,
    }
}

fn entries(remedy: &str) -> String {
    let mut text = String::new();
    let mut rest = remedy;
    while let Some((before, option)) = rest.split_once("--") {
        text.push_str(before);
        match entry(option) {
            Some((entry, after)) => {
                text.push_str(&entry);
                rest = after;
            }
            None => {
                text.push_str("--");
                rest = option;
            }
        }
    }
    text + rest
}

/// The entry of an option whose hyphens are left out, and the text after the option; `None` of no setting.
fn entry(option: &str) -> Option<(String, &str)> {
    let (name, rest) = match option.strip_prefix("set ") {
        Some(assigned) => assigned.split_once('=')?,
        None => option.split_once(' ')?,
    };
    let setting = Setting::find(name)?;
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let value = rest.get(..end)?.trim_end_matches([',', ';', ':', ')']);
            (value, rest.get(value.len()..)?)
        }
    };
    Some((format!("{} = \"{value}\"", setting.name), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_entries_and_other_options_stay() {
        let said = [
            "iolab's way: --set bs=4k",
            "--set bs_mix=4k:60,64k:30,1M:10",
            "--set sync=each (fsync after each write), with --set sync_every=N after every Nth",
            "--set layout=shared: each thread has a share of the region",
            "--set command=\"PROGRAM {file}\" times a program",
            "--size 1G (region)",
            "--direct (cache=direct); --buffered for the page cache",
            "--set trials_min=10, or --precision 2%",
            "--seed 42",
        ];
        insta::assert_snapshot!(said.map(entries).join("\n"), @r#"
        iolab's way: bs = "4k"
        bs_mix = "4k:60,64k:30,1M:10"
        sync = "each" (fsync after each write), with sync_every = "N" after every Nth
        layout = "shared": each thread has a share of the region
        command = "PROGRAM {file}" times a program
        region = "1G" (region)
        --direct (cache=direct); --buffered for the page cache
        --set trials_min=10, or --precision 2%
        --seed 42
        "#);
    }
}
