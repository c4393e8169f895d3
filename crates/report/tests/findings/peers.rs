//! Comparisons of other tools with iolab: each rule once with a finding and once without.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::analyse;
use iolab_analysis::compare::with_peers;
use iolab_record::{Event, EventKind, FurtherTarget, RunRecord, RunStatus, Sample, ServedBy};
use iolab_report::compare;
use iolab_report::findings::interpretation::Interpretation;

use crate::named;
use iolab_synthetic::{add_cell, around, record, serve, size_curve};

/// Two sizes by iolab and by fio, with fio's throughput `share` times iolab's.
fn beside_fio(share: f64) -> RunRecord {
    let mut run = record("disk-grid", &["bs", "tool"]);
    for (bs, mb_s) in [("4KiB", 100.0), ("1MiB", 900.0)] {
        for (tool, share) in [("iolab", 1.0), ("fio", share)] {
            let levels = [format!("bs={bs}"), format!("tool={tool}")];
            let levels = levels.each_ref().map(String::as_str);
            let cell = add_cell(&mut run, &levels, &around(mb_s * share));
            run.cells[cell].spec.tool = tool.parse().expect("a tool");
        }
    }
    for sample in &mut run.samples {
        if run.cells[sample.cell as usize].spec.tool.is_peer() {
            sample.effective.command = Some("fio-3.33: fio --rw=read".to_owned());
        }
    }
    run
}

#[test]
fn line_of_run_states_agreement_of_tools() {
    let line = |record: RunRecord| {
        let said = Interpretation::of(&AnalysedRun::of(record));
        said.conclusions[0].text.clone()
    };
    // One cell of fio came from memory, so that there is no result for all cells together.
    let mut cached = beside_fio(1.01);
    serve(&mut cached, 3, ServedBy::PageCache, "no traffic");
    insta::assert_snapshot!(line(cached), @"disk-grid on /data: throughput 100 MB/s (4 KiB) to 900 MB/s (1 MiB), from the device; fio: 1 of 2 cells equivalent within 10 %; cannot tell in 1: page cache");
}

#[test]
fn each_target_has_a_line_of_its_own() {
    let mut run = record("disk-grid", &["target", "bs", "tool"]);
    run.run.target = "/a".to_owned();
    run.further_targets = vec![FurtherTarget {
        id: 1,
        target: "/b".to_owned(),
        ..FurtherTarget::default()
    }];
    for (target, mb_s) in [("/a", 100.0), ("/b", 300.0)] {
        for (bs, faster) in [("4KiB", 1.0), ("1MiB", 9.0)] {
            for tool in ["iolab", "fio"] {
                let levels = [
                    "target=".to_owned() + target,
                    format!("bs={bs}"),
                    format!("tool={tool}"),
                ];
                let levels = levels.each_ref().map(String::as_str);
                let cell = add_cell(&mut run, &levels, &around(mb_s * faster));
                run.cells[cell].spec.tool = tool.parse().expect("a tool");
                run.cells[cell].spec.target = target.parse().ok();
            }
        }
    }
    let lines = |run: &RunRecord| {
        let said = Interpretation::of(&AnalysedRun::of(run.clone())).conclusions;
        let lines = said
            .iter()
            .map(|one| format!("{}: {}", one.target, one.text));
        lines.collect::<Vec<_>>().join("\n")
    };
    let whole = lines(&run);
    let is_of_b = |sample: &Sample| sample.cell >= 4;
    run.samples.retain(|sample| !is_of_b(sample));
    run.run.status = RunStatus::Interrupted;
    insta::assert_snapshot!([whole, lines(&run)].join("\n"));
}

/// The JSON has the text's statement on all cells together as well.
#[test]
fn json_has_claim_and_doubts_of_all_cells() {
    let overall = |record: RunRecord| {
        let mut bytes = Vec::new();
        compare::json(&with_peers(&AnalysedRun::of(record))[0], &mut bytes).expect("written");
        let whole: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        whole["overall"].clone()
    };
    assert_eq!(overall(beside_fio(1.01))["verdict"], "equivalent");
    let sure = overall(beside_fio(2.0));
    assert_eq!(sure["verdict"], "faster");
    assert_eq!(sure["doubts"], serde_json::json!([]));
    let mut cached = beside_fio(1.01);
    serve(&mut cached, 3, ServedBy::PageCache, "no traffic");
    let open = overall(cached);
    assert_eq!(open["verdict"], "cannot tell (page cache)");
    let doubt = &open["doubts"][0];
    assert_eq!(
        (&doubt["doubt"], &doubt["side"]),
        (&"page-cache".into(), &"new".into())
    );
}

#[test]
fn commands_of_other_tools_are_reported() {
    let run = beside_fio(1.0);
    let command = &named("peers", &analyse(&run))[0].text;
    insta::assert_snapshot!(command, @"Command of a trial with 4 KiB, fio: fio-3.33: fio --rw=read - every trial's own command is in the column 'effective' of iolab export.");
    assert!(named("gaps", &analyse(&run)).is_empty());
    assert!(
        named(
            "peers",
            &analyse(&size_curve("read-size", &[("4KiB", 1.0)]))
        )
        .is_empty()
    );
}

#[test]
fn cells_left_out_by_tool_name_the_reason() {
    // Cells 1 and 3 belong to fio. Those of `gaps_at` are gaps, which failed or never began.
    let told = |gaps_at: &[i64], failed: bool, why: fn(i64) -> &'static str| {
        let mut run = beside_fio(1.0);
        for sample in &mut run.samples {
            sample.ok = !(failed && gaps_at.contains(&sample.cell));
        }
        run.samples
            .retain(|sample| failed || !gaps_at.contains(&sample.cell));
        run.events.extend(gaps_at.iter().map(|cell| Event {
            at_utc: "2026-01-02T03:04:06Z".to_owned(),
            kind: EventKind::Gap,
            cell: Some(*cell),
            message: why(*cell).to_owned(),
        }));
        let found = named("gaps", &analyse(&run)).into_iter();
        found.map(|one| one.text).collect::<Vec<_>>().join("\n")
    };
    let one = |_| "it cannot do that";
    insta::assert_snapshot!(told(&[3], false, one), @"fio did not measure 1 of its 2 cells (bs=1MiB): it cannot do that.");
    insta::assert_snapshot!(told(&[1, 3], true, one), @"fio failed, and did not finish any of its 2 cells: it cannot do that.");
    let two = |cell| match cell {
        1 => "its requests are larger",
        _ => "its requests are smaller",
    };
    insta::assert_snapshot!(told(&[1, 3], false, two), @r"
    fio did not measure 1 of its 2 cells (bs=4KiB): its requests are larger.
    fio did not measure 1 of its 2 cells (bs=1MiB): its requests are smaller.
    ");
}
