//! Measured cells as jobs of fio, with a description in iolab's settings.

use iolab_fio::described::{DescribedJob, describe};
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;

use crate::line_files::check;

/// Options that most jobs have, which outcomes leave out.
const USUAL: [&str; 13] = [
    "bs=4096", "direct=1", "fadvise_hint=0", "filename=target", "group_reporting=1",
    "io_size=1073741824", "iodepth=1", "ioengine=psync", "numjobs=1", "offset=0",
    "runtime=500000us", "size=1073741824", "thread=1",
];

/// The jobs of the only cell of an experiment.
fn jobs(line: &str) -> Vec<DescribedJob> {
    let (name, sets) = line.split_once(' ').expect("settings");
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets.split(' ') {
        experiment.apply_set(set).expect(set);
    }
    let plan = Plan::of_new_run(experiment, &OneProcess).expect(line);
    let [cell] = plan.cells() else {
        panic!("one cell: {line}")
    };
    describe(&cell.spec)
}

#[test]
fn cells_have_options_of_fio() {
    check(&["described"], |line| {
        let jobs = jobs(line).into_iter().map(|job| {
            let is_usual = |text: &String| USUAL.contains(&text.as_str());
            let options = job.options.iter();
            let options = options.filter(|(name, _)| *name != "description");
            let options = options.map(|(name, value)| format!("{name}={value}"));
            let options: Vec<String> = options.filter(|text| !is_usual(text)).collect();
            format!("{}: {}\n", job.group, options.join(" "))
        });
        jobs.collect::<String>()
    });
}

#[test]
fn descriptions_name_settings_or_a_program() {
    let described = [
        "read-random bs=4k rate=500 threads=3 idle=1s",
        "interference writer.rate=none",
        "linkage linkage=static region=1M",
    ]
    .map(|line| {
        let jobs = jobs(line).into_iter();
        let texts = jobs.map(|job| format!("  {}\n", job.options["description"]));
        format!("{line}\n{}", texts.collect::<String>())
    });
    insta::assert_snapshot!(described.concat(), @r"
    read-random bs=4k rate=500 threads=3 idle=1s
      iolab measured pattern=rand; threads=3; first_offset=random; buffer_memory=contiguous; bytes=1GiB; time=500ms; rate=500; idle=1s
    interference writer.rate=none
      iolab measured backend=io_uring; pattern=rand; depth=64; first_offset=random; buffer_memory=contiguous; time=1s; rate=1000; arrivals=poisson
      iolab measured backend=io_uring; bs=1MiB; offset=1GiB; depth=4; read_percent=0; first_offset=random; buffer_memory=contiguous; time=1s
    linkage linkage=static region=1M
      iolab timed a program: reader-static {file} {bs}
    ");
}
