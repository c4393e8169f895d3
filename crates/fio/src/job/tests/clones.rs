use super::super::JobFile;
use super::{grouped, planned};

#[test]
fn clones_with_gaps_have_ranges_of_their_own() {
    let text = "[w]\nfilename=/x\nrw=write\nnumjobs=3\nsize=1m\noffset=4m\noffset_increment=16m\n";
    let names = ["threads", "offset", "region"];
    assert_eq!(
        grouped(text, &names),
        [["w-1 1 4MiB 1MiB", "w-2 1 20MiB 1MiB", "w-3 1 36MiB 1MiB"]]
    );
    // One whose clones wait for the job before it waits with all of them.
    let waiting = format!("[r]\nfilename=/x\nrw=read\nsize=1m\n{text}stonewall\n");
    assert_eq!(planned(&waiting, &["threads"]).len(), 2);
}

#[test]
fn a_job_waits_for_clones_by_job_name() {
    let text = "[w]\nfilename=/x\nrw=write\nnumjobs=3\nsize=1m\noffset_increment=16m\n[r]\nfilename=/x\nrw=read\nsize=1m\nwait_for=w\n";
    assert_eq!(planned(text, &["threads"]).len(), 2);
    let wrong = text.replace("wait_for=w", "wait_for=x");
    let error = JobFile::parse(&wrong, "x").expect_err("no such job");
    insta::assert_snapshot!(error.message(), @"line 11: wait_for=x is not the job before this one");
}

#[test]
fn options_that_made_clones_are_shown_as_written() {
    let text = "[w]\nfilename=/x\nrw=write\nnumjobs=3\nsize=1m\noffset=4m\noffset_increment=16m\n[w-1]\nfilename=/x\nrw=read\nsize=1m\noffset=1m\n";
    let file = JobFile::parse(text, "x").expect("a job file");
    let told = file.explained();
    let of = |line: &str| -> Vec<&str> {
        let own = told.iter().filter(|told| told.starts_with(line));
        own.map(String::as_str).collect()
    };
    assert_eq!(
        [
            of("line 4:"),
            of("line 4 "),
            of("line 6 "),
            of("line 7 "),
            of("line 12 ")
        ]
        .concat(),
        [
            "line 4 [w-1_, w-2, w-3]: numjobs=3: 3 groups with threads=1 each",
            "line 6 [w-1_, w-2, w-3]: offset=4m: the first group begins at 4 MiB",
            "line 7 [w-1_, w-2, w-3]: offset_increment=16m: the groups begin at 4 MiB, each 16 MiB after the one before",
            "line 12 [w-1]: offset=1m: offset=1MiB",
        ]
    );
}

#[test]
fn too_many_clones_are_refused_beforehand() {
    let refused = |text: &str| {
        let error = JobFile::parse(text, "x").expect_err("too many");
        error.message().to_owned()
    };
    let one = "[w]\nfilename=/x\nrw=write\nnumjobs=64\nsize=1m\noffset_increment=16m\n";
    assert_eq!(grouped(one, &["threads"])[0].len(), 64);
    insta::assert_snapshot!(refused(&one.replace("64", "100")), @"line 4: 100 clones with offset_increment run side by side, more than 64");
    let head = format!(
        "[global]\nfilename=/x\nnumjobs=16\nsize=16m\noffset_increment=32m\ndescription={}\n",
        "d".repeat(30_000)
    );
    let beside = format!("{head}{}", "[]\n".repeat(900));
    insta::assert_snapshot!(refused(&beside), @"line 3: 80 clones with offset_increment run side by side, more than 64");
    let behind = format!("{head}{}", "[]\nstonewall\n".repeat(400));
    insta::assert_snapshot!(refused(&behind), @"line 3: there are more than 1000 jobs, with clones that have offset_increment");
}

#[test]
fn impossible_ranges_of_clones_are_explained() {
    let text =
        "[w]\nfilename=/x\nfilesize=1g\nrw=write\nnumjobs=3\nsize=1m\noffset_increment=16m\n";
    let refused = |text: &str| {
        let error = JobFile::parse(text, "x").expect_err("refused");
        error.message().to_owned()
    };
    insta::assert_snapshot!(refused(&text.replace("=16m", "=20%")), @"line 7: clones with offset_increment, and a range in percent");
    let random = text.replace("rw=write", "rw=randwrite\nnorandommap");
    insta::assert_snapshot!(refused(&random.replace("=16m", "=1m")), @"line 8: clones with offset_increment, and pattern rand-replace");
    assert_eq!(grouped(&random, &["threads"])[0].len(), 3);
}
