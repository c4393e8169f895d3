//! Job files as engineers write them: the meaning of each option, or all obstacles for iolab.

use std::fmt::Write as _;

use super::JobFile;

macro_rules! job_files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("whole_files/", $name, ".fio")))),+]
    };
}

#[test]
fn each_option_is_applied_explained_or_refused() {
    let files = job_files![
        "01-oltp", "02-zipf", "03-lat-target", "04-rate", "05-stages", "06-trim", "07-verify",
        "08-nrfiles", "09-steady", "10-poll", "11-think", "12-replay", "13-zones", "14-dbplain",
    ];
    for (name, text) in files {
        let mut told = String::new();
        match JobFile::parse(text, name) {
            Ok(file) => {
                for line in file.explained() {
                    writeln!(told, "{line}").expect("a string");
                }
            }
            Err(error) => writeln!(told, "{error}").expect("a string"),
        }
        insta::assert_snapshot!(name, told);
    }
}
