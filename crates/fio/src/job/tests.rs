use std::time::Duration;

use iolab_plan::cells::cells;
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::{CellSpec, Setting};

use super::JobFile;

mod clones;
mod like_fio;
mod secrets;

#[test]
fn the_path_of_libblkio_is_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, other] = ["f1", "f2"].map(|name| folder.path().join(name));
    for file in [&path, &other] {
        std::fs::write(file, [0; 4096]).expect("written");
    }
    let job = "[a]\nioengine=libblkio\nsize=4k\nrw=read\n";
    let named = format!("libblkio_path={}\n", path.display());
    let left = format!("filename={}\n", other.display());
    for lines in [named.clone() + &left, left + &named] {
        let text = format!("{job}libblkio_driver=io_uring\n{lines}");
        let file = JobFile::parse(&text, "x").expect("a job file");
        assert_eq!(file.target.as_deref(), Some(path.as_path()));
    }
    let text = format!("{job}libblkio_driver=nvme-io_uring\n{named}");
    assert!(JobFile::parse(&text, "x").is_err());
}

#[test]
fn several_files_single_floors_and_traces_are_refused() {
    let told = [
        "filename=f1\nfilename=f2\n",
        "filename=f1:f2\n",
        "directory=da:db\nnumjobs=2\n",
        "filename=f1\n[b]\nfilename=f2\nfilename=f3\n",
        "filename=d.dat\nrate_iops_min=100000\n",
        "filename=d.dat\nratemin=1m\n",
        "read_iolog=requests.log\n",
    ]
    .map(|lines| {
        let text = format!("[a]\nrw=randread\nbs=4k\nsize=64m\n{lines}");
        JobFile::parse(&text, "x").expect_err(lines).to_string()
    });
    insta::assert_snapshot!(told.join("\n"));
    let global = "[global]\nfilename=f1\nsize=64m\n[a]\nfilename=f2\n";
    JobFile::parse(global, "x").expect_err("two files");
}

/// The cells of a job file, as settings with these names.
fn planned(text: &str, names: &[&str]) -> Vec<String> {
    let file = JobFile::parse(text, "x").expect("a job file");
    let settings = |cell: &CellSpec| -> Vec<String> {
        let named = |name: &&str| Setting::find(name).expect("a setting").get(cell);
        names.iter().map(named).collect()
    };
    let planned = cells(&file.experiment).expect("cells");
    planned
        .iter()
        .map(|cell| settings(&cell.spec).join(" "))
        .collect()
}

/// The groups of each cell, as settings with these names; idle ones are left out.
fn grouped(text: &str, names: &[&str]) -> Vec<Vec<String>> {
    let file = JobFile::parse(text, "x").expect("a job file");
    let group = |group: &GroupSpec| {
        let named = |name: &&str| Setting::find(name).expect("a setting").get(&group.spec);
        let settings: Vec<String> = names.iter().map(named).collect();
        format!("{} {}", group.name, settings.join(" "))
    };
    let planned = cells(&file.experiment).expect("cells");
    let cells = planned.iter().map(|cell| {
        cell.spec.check().expect("a trial");
        cell.spec.active().map(group).collect()
    });
    cells.collect()
}

#[test]
fn jobs_on_one_file_share_its_bytes() {
    let text = "[global]\nfilename=/dev/nowhere\nsize=1g\ntime_based\nruntime=1\n[log]\nrw=write\nfdatasync=1\n[data]\nrw=randread\nnumjobs=4\n";
    assert_eq!(
        grouped(text, &["offset", "region", "sync", "threads", "time"]),
        [["log 0 1GiB fdatasync 1 1s", "data 0 1GiB none 4 1s"]]
    );
}

#[test]
fn reads_after_durable_writes_are_measured_too() {
    let text = "[global]\nfilename=/x\nsize=1m\n[w]\nrw=write\nfsync=1\n[r]\nstonewall\nrw=read\n";
    assert_eq!(
        planned(text, &["read_percent", "sync"]),
        ["0 each", "100 none"]
    );
}

#[test]
fn threads_share_files_as_fios_jobs_do() {
    let names = ["threads", "layout", "region", "bytes"];
    for (text, cells) in [
        ("numjobs=4\nsize=1m", "4 private 4MiB 4MiB"),
        ("numjobs=4\nsize=1m\nfilename=/x", "4 overlapping 1MiB 4MiB"),
        (
            "numjobs=4\nsize=1m\nfilename=/x\noffset_increment=1m",
            "4 shared 4MiB 4MiB",
        ),
        ("size=1m\nloops=3", "1 shared 1MiB 3MiB"),
        ("filesize=2m\noffset=1m", "1 shared 1MiB 1MiB"),
        (
            "size=1m\nio_size=256k\n[b]\nsize=1m\nio_size=256k",
            "2 private 2MiB 512KiB",
        ),
    ] {
        assert_eq!(
            planned(&format!("[a]\n{text}\n"), &names),
            [cells],
            "{text}"
        );
    }
}

#[test]
fn a_latency_level_is_judged_at_each_depth() {
    let text = "[a]\nrw=randread\nioengine=libaio\niodepth=6\nlatency_target=500\nlatency_window=2000000\nlatency_percentile=99.9\n";
    assert_eq!(
        planned(text, &["depth", "time", "bytes"]),
        ["1 2s none", "2 2s none", "4 2s none", "6 2s none"]
    );
    let file = JobFile::parse(text, "x").expect("a job file");
    let held = file.experiment.hold.expect("a level").to_string();
    assert_eq!(held, "p99.9<500us");
    // Four depths, each warmed up and tried for 2 s as often as an interval takes.
    let trials = 4 * (file.experiment.design.trials_min + 1);
    let needed = Duration::from_secs(2) * trials;
    assert!(file.experiment.design.budget >= needed);
    let slow = text.replace("latency_target=500", "latency_target=500000");
    JobFile::parse(&slow, "x").expect("half a second, as in fio's latency-profile.fio");
}

#[test]
fn identical_jobs_are_one_with_more_threads() {
    let text = "[global]\nfilename=/x\nsize=1m\nrw=randread\nnumjobs=3\n[a]\n[b]\n";
    let file = JobFile::parse(text, "x").expect("a job file");
    let told = file.explained();
    let told = told.iter().find(|line| line.contains("numjobs"));
    let told = told.map(String::as_str).unwrap_or_default();
    insta::assert_snapshot!(told, @"line 5: numjobs=6 (with the threads of b): threads=6, layout=overlapping");
    // Any number of jobs, with any number of clones.
    let more = format!("{text}[c]\nnumjobs=1\n[d]\n[e]\nrw=read\n");
    let threads = |text: &str| grouped(text, &["threads"]);
    assert_eq!(threads(&more), [["a 10", "e 3"]]);
    let waiting = format!("{text}[c]\nrw=read\nwait_for=b\n[d]\nrw=write\nwait_for=c\n");
    assert_eq!(planned(&waiting, &["threads"]), ["6", "3", "3"]);
    // Clones with ranges of their own are not merged into another job.
    let own = text.replace("size=1m", "size=1m\noffset_increment=1m");
    assert_eq!(threads(&own.replace("randread", "read")), [["a 3", "b 3"]]);
}

#[test]
fn unknown_options_are_named_with_their_line() {
    let told = [
        "[a]\nrw=write\nverify=pattern\n",
        "[a]\nrw=read\nbsrange=4k-10k\n",
        "[a]\nnrfiles=8\nfilename=x\n",
        "[a]\nruntime\n",
        "[a]\nrw=read\nioengine=rbd\n",
        "[global]\nbs=4q\n[a]\nrw=read\n",
        "[a]\r\nrw=read\r\n\r\nbs=4q\r\n",
        "[a]\nrw=read\nnumjobs=4000\n",
        "\n[a]\ndirect=1\nioengine=mmap\n",
        "[a\n",
        "rw=read\n",
        "bs=4k\n[a]\nrw=read\n",
        "[a]\nrw=readd\n",
        "[a]\nrw=randrw:8\n",
        "[a]\nprioclass=3\n",
        "[a]\nwait_for=a\n",
        "[a]\nrw=read\n[b]\nrw=write\n[c]\nwait_for=a\n",
        "[a]\n[b]\nwait_for=none\n",
        "[a]\n[b]\nnumjobs=0\n",
        "[a]\nbs=2m\nsize=1m\n",
        "[a]\nfilesize=1m\noffset=1m\n",
        "[a]\nrate=1m\nrate_iops=100\n",
        "[a]\nrw=read\nexitall\n[b]\nrw=write\n",
        "[a]\nrw=randrw\nrate=1m,2m\n",
        "[a]\nrw=read\nzonemode=strided\n",
        "[a]\nrw=read\nlatency_target=5q\n",
        "[a]\nfilename=/x:/y\n",
        "[a]\nramp_time=soon\n",
    ]
    .map(|text| {
        let error = JobFile::parse(text, "x").expect_err(text);
        assert!(error.remedy().is_some(), "{error}");
        error.message().to_owned()
    });
    insta::assert_snapshot!(told.join("\n"), @"
    line 3: iolab cannot carry out verify=pattern
    line 3: bsrange: '4096-10240' is not a range of 2 to 4096 sizes, all multiples of the first one
    line 2: iolab cannot carry out nrfiles=8
    line 2: 'runtime' has no value
    line 3: iolab has no backend like ioengine=rbd
    line 2: iolab cannot carry out bs=4q
    line 4: iolab cannot carry out bs=4q
    line 3: iolab cannot carry out numjobs=4000
    line 2: backend mmap with cache=direct
    line 1: a section has no closing bracket
    2 mistakes
      line 1: 'rw' stands before the first section
        write [global] above it
      line 1: there is no job in it
        a job begins with its name in brackets: [job1]
    line 1: 'bs' stands before the first section
    line 2: iolab cannot carry out rw=readd
    line 2: iolab cannot carry out rw=randrw:8
    line 2: iolab cannot carry out prioclass=3
    line 2: wait_for=a is not the job before this one
    line 6: wait_for=a is not the job before this one
    line 3: wait_for=none is not the job before this one
    line 3: iolab cannot carry out numjobs=0
    line 3: 1 MiB of the file are smaller than a block of 2 MiB
    line 2: 0 B of the file are smaller than a block of 4 KiB
    line 3: rate and rate_iops in one job
    line 3: iolab cannot carry out 'exitall'
    line 3: rate=1m,2m in a mix with 50 % reads
    line 3: iolab cannot carry out zonemode=strided
    line 3: iolab cannot carry out latency_target=5q
    line 2: filename names several files
    line 2: iolab cannot carry out ramp_time=soon
    ");
}

#[test]
fn a_file_is_made_but_not_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display();
    for (options, target) in [
        (format!("directory={path}/none"), folder.path().join("none")),
        (format!("filename={path}/none"), folder.path().to_owned()),
        (
            format!("directory={path}/none\nfilename=f"),
            folder.path().join("none/f"),
        ),
        // fio reads DIRECTORY/ABSOLUTE/NAME, and so must iolab: the file of that absolute name is another one.
        (
            format!("directory={path}/none\nfilename=/dev/zero"),
            folder.path().join("none/dev/zero"),
        ),
    ] {
        let file = JobFile::parse(&format!("[a]\nrw=read\n{options}\n"), "x");
        assert_eq!(file.expect("a job file").target, Some(target), "{options}");
    }
    let text = format!(
        "[global]\ndirectory={path}/none\nfilename=f\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n"
    );
    let target = JobFile::parse(&text, "x").expect("a job file").target;
    assert_eq!(target, Some(folder.path().join("none")));
}

#[test]
fn a_size_of_0_means_the_whole_file() {
    let sized = JobFile::parse("[a]\nrw=read\nsize=0\n", "x").expect("a job file");
    let without = JobFile::parse("[a]\nrw=read\n", "x").expect("a job file");
    assert_eq!(sized.experiment, without.experiment);
    assert_eq!(sized.notes, without.notes);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "[global]\nbs=banana\nioengine=nonsense\n[one]\nrw=read\nnosuch=1\n[two\nstonewall\nrw=writ\niodepth=0\n[three]\nfilename=a:b\n";
    let error = JobFile::parse(text, "x").expect_err("much is wrong");
    let lines: Vec<&str> = error
        .message()
        .lines()
        .filter_map(|line| line.trim().strip_prefix("line ")?.split(':').next())
        .collect();
    assert_eq!(lines, ["2", "3", "6", "7", "9", "10", "12"], "{error}");
    insta::assert_snapshot!(error.message().lines().next().unwrap_or_default(), @"7 mistakes");
}
