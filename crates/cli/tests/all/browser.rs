//! The page in a real browser: what is visible before anything is scrolled, on a desktop and on a telephone.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::words::words;
use crate::support::{folder, run};

/// Sends the places of the parts of the page to the page around it.
const PROBE: &str = "<script>addEventListener('load', () => {
  const box = q => { const e = document.querySelector(q); if (!e) return null;
    const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom].map(Math.round) };
  parent.postMessage(JSON.stringify({
    title: box('h1'), trust: box('#trust'), glance: box('#glance .scroll'), overview: box('#overview a'),
    found: box('#found'), width: document.documentElement.scrollWidth, folded: document.querySelectorAll('details[open]').length,
  }), '*') })</script>";

/// The measurements of the probe in a window of this size.
fn seen(browser: &str, place: &Path, width: u32, height: u32) -> serde_json::Value {
    let frame = format!(
        "<!DOCTYPE html><body><script>onmessage = e => document.body.setAttribute('data-seen', e.data)</script>\
         <iframe src='probed.html' style='width:{width}px;height:{height}px;border:0'></iframe></body>"
    );
    fs::write(place.join("frame.html"), frame).unwrap();
    let done = Command::new(browser)
        .args(words!(
            "--headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --dump-dom"
        ))
        .arg(format!(
            "--user-data-dir={}",
            place.join("profile").display()
        ))
        .arg(format!("file://{}", place.join("frame.html").display()))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let page = String::from_utf8_lossy(&done.stdout);
    let seen = page.split_once("data-seen=\"");
    let seen = seen.and_then(|(_, rest)| rest.split_once('"'));
    let (text, _) = seen.unwrap_or_else(|| panic!("the probe did not answer: {done:?}"));
    serde_json::from_str(&text.replace("&quot;", "\"")).expect("JSON")
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
    let Some(browser) = needs::tool(needs::Need::Browser) else {
        return;
    };
    let folder = folder();
    let study =
        words!("study model:sata-ssd --suite quick --size 64M --time 20ms --budget 1s --seed 1");
    run(folder.path(), &study).expect(0);
    let page = fs::read_to_string(folder.path().join("iolab-results/report.html")).unwrap();
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    fs::write(
        folder.path().join("probed.html"),
        page.replace("</body>", &format!("{PROBE}</body>")),
    )
    .unwrap();
    let desktop = seen(browser, folder.path(), 1280, 800);
    let telephone = seen(browser, folder.path(), 390, 844);
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
