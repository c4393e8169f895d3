//! The page in a real browser: what is visible before anything is scrolled, on a desktop and on a telephone.
#![allow(clippy::print_stderr)] // a test that skips says so

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{folder, run};

/// Sends the places of the parts of the page to the page around it.
const PROBE: &str = "<script>addEventListener('load', () => {
  const box = q => { const e = document.querySelector(q); if (!e) return null;
    const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom].map(Math.round) };
  parent.postMessage(JSON.stringify({
    title: box('h1'), trust: box('#trust summary'), glance: box('#glance table'), overview: box('#overview a'),
    found: box('#found'), width: document.documentElement.scrollWidth, folded: document.querySelectorAll('details[open]').length,
  }), '*') })</script>";

/// The names of browsers that dump a page.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What the probe sees in a window of this size; `None` where no browser works.
fn seen(place: &Path, width: u32, height: u32) -> Option<serde_json::Value> {
    let frame = format!(
        "<!DOCTYPE html><body><script>onmessage = e => document.body.setAttribute('data-seen', e.data)</script>\
         <iframe src='probed.html' style='width:{width}px;height:{height}px;border:0'></iframe></body>"
    );
    fs::write(place.join("frame.html"), frame).unwrap();
    let dump = |browser: &&str| {
        let done = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--virtual-time-budget=20000",
                "--dump-dom",
            ])
            .arg(format!(
                "--user-data-dir={}",
                place.join("profile").display()
            ))
            .arg(format!("file://{}", place.join("frame.html").display()))
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let page = String::from_utf8_lossy(&done.stdout).into_owned();
        let (_, rest) = page.split_once("data-seen=\"")?;
        let text = rest.split_once('"')?.0.replace("&quot;", "\"");
        serde_json::from_str(&text).ok()
    };
    BROWSERS.iter().find_map(dump)
}

/// Left, top, right and bottom of a part.
fn place_of(seen: &serde_json::Value, part: &str) -> [i64; 4] {
    let side = |i: usize| {
        seen[part][i]
            .as_i64()
            .unwrap_or_else(|| panic!("no {part} in {seen}"))
    };
    [side(0), side(1), side(2), side(3)]
}

#[test]
fn the_first_screen_has_the_glance() {
    let folder = folder();
    let study = [
        "study",
        "model:sata-ssd",
        "--size",
        "64M",
        "--time",
        "20ms",
        "--budget",
        "1s",
        "--seed",
        "1",
    ];
    run(folder.path(), &study).expect(0);
    let page = fs::read_to_string(folder.path().join("iolab-results/report.html")).unwrap();
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    fs::write(
        folder.path().join("probed.html"),
        page.replace("</body>", &format!("{PROBE}</body>")),
    )
    .unwrap();
    let (Some(desktop), Some(telephone)) = (
        seen(folder.path(), 1280, 800),
        seen(folder.path(), 390, 844),
    ) else {
        eprintln!(
            "skipped: no browser: none of {} dumps a page",
            BROWSERS.join(", ")
        );
        return;
    };
    for (seen, width, height) in [(&desktop, 1280, 800), (&telephone, 390, 844)] {
        let page = seen["width"].as_i64().expect("a width");
        assert!(page <= width, "the page is wider than the window: {seen}");
        assert_eq!(seen["folded"], 0, "{seen}");
        for part in ["title", "trust", "glance"] {
            let [left, top, right, bottom] = place_of(seen, part);
            assert!(
                left >= 0 && top >= 0 && right <= width && bottom <= height,
                "{part} at {width}: {seen}"
            );
        }
    }
    let [_, top, _, bottom] = place_of(&desktop, "overview");
    assert!(
        top < bottom && bottom <= 800,
        "the curves at 1280: {desktop}"
    );
    assert!(
        place_of(&telephone, "glance")[3] < place_of(&telephone, "found")[1],
        "{telephone}"
    );
}
