//! The page in a real browser, and the article in a real LaTeX, where they are installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::RunRecord;
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use needs::Need;

use crate::pages;
use crate::snapshots::strided;

use iolab_synthetic::size_curve;

/// Ends elements, comments, scripts and groups; opens others.
const HOSTILE: &str =
    "</script><img src=http://192.0.2.1/x onerror=alert(1)>\\input{/etc/passwd}$^_%#&~\"'`[x]";

/// Runs before the page's own script, and keeps errors and requests that the page's rules refused.
const BEFORE: &str = "<script>
window.problems = [];
addEventListener('error', (e) => problems.push('error: ' + e.message));
addEventListener('securitypolicyviolation', (e) => problems.push('refused: ' + e.blockedURI));
</script>";

/// Uses the page as a reader would, and writes its observations into the page.
const AFTER: &str = "<script>
const figure = document.querySelector('figure');
const said = () => figure.querySelector('.tip').textContent;
const press = (name) => [...figure.querySelectorAll('button')].find((b) => b.textContent === name).click();
const frame = figure.querySelector('.drawing');
const svg = () => frame.querySelector('svg');
const key = (name) => frame.dispatchEvent(new KeyboardEvent('keydown', { key: name }));
const point = (x, y, kind) => svg().dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true }));
const seen = {};
const mark = svg().querySelectorAll('.mark')[1];
const at = mark.getBoundingClientRect();
point(at.left + at.width / 2, at.top + at.height / 2, 'pointermove');
seen.hover = said();
seen.words = mark.dataset.words;
point(-500, -500, 'pointermove');
seen.away = said();
// A whisker that lies over every other mark.
const whisker = svg().querySelector('.mark .interval');
const length = whisker.getAttribute('d');
whisker.setAttribute('d', 'M0 0L1000 1000');
const centre = ({ left, top, width, height }) => [left + width / 2, top + height / 2];
seen.confused = [...svg().querySelectorAll('.mark')].filter((one) => {
  point(...centre(one.querySelector('.point').getBoundingClientRect()), 'pointermove');
  return said() !== one.dataset.words;
}).length;
whisker.setAttribute('d', length);
point(-500, -500, 'pointermove');
key('Home');
seen.home = said();
key('ArrowRight');
seen.right = said();
key('ArrowUp');
seen.up = said();
key('Enter');
seen.row = location.hash.slice(1);
seen.target = document.querySelectorAll('tr.cited').length;
key('Escape');
seen.escape = said();
const finding = document.querySelector('a[data-rows]');
finding.click();
seen.cited = [...document.querySelectorAll('tr.cited')].map((row) => row.id).join(' ');
seen.finding = finding.dataset.rows;
seen.marks = document.querySelectorAll('.mark.cited').length;
const visible = () => [...svg().querySelectorAll('.mark')].filter((m) => m.getClientRects().length > 0).length;
seen.all = visible();
press(svg().querySelector('.series').dataset.series);
seen.some = visible();
// As on a system without the font of the figures: in a wider font each text keeps its length.
svg().style.fontFamily = 'monospace';
const texts = [...svg().querySelectorAll('text')];
const off = (text) => Math.abs(text.getBBox().width - text.getAttribute('textLength')) > 0.5;
seen.texts = texts.length;
seen.longer = texts.filter(off).map((text) => text.textContent);
const table = document.querySelector('#e1 table');
const column = (n) => [...table.tBodies[0].rows].map((row) => row.cells[n].textContent.replace(/\\s/, ''));
seen.unsorted = column(1);
table.querySelectorAll('th button')[1].click();
seen.ascending = column(1);
table.querySelectorAll('th button')[1].click();
seen.descending = column(1);
const write = () => {
  const out = document.createElement('pre');
  out.id = 'seen';
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
};
seen.problems = problems;
seen.requests = performance.getEntriesByType('resource').map((e) => e.name);
write();
</script>";

fn hostile() -> RunRecord {
    let mut record = size_curve(HOSTILE, &[("4KiB", 100.0), ("8KiB", 110.0)]);
    record.experiment.question = HOSTILE.to_owned();
    record.experiment.toml = HOSTILE.to_owned();
    record.run.target = HOSTILE.to_owned();
    record
        .environment
        .extend([(HOSTILE.to_owned(), HOSTILE.to_owned())]);
    record
}

fn inputs() -> Vec<Input> {
    let input = |record: RunRecord| {
        let path = "a b.iolab".into();
        Input::new(path, AnalysedRun::of(record))
    };
    [strided(), hostile()].map(input).into()
}

/// Values that the driver reads from a page after using it.
fn used(browser: &str, folder: &Path, page: &str) -> serde_json::Value {
    let driven = page
        .replacen("<body>", &format!("<body>{BEFORE}"), 1)
        .replacen("</body>", &format!("{AFTER}</body>"), 1);
    let file = folder.join("driven.html");
    fs::write(&file, driven).unwrap();
    seen_in(&dom(browser, folder, &file, &["--window-size=1280,900"]))
}

/// Values that a driver wrote into a page.
fn seen_in(dom: &str) -> serde_json::Value {
    let start = dom
        .find("<pre id=\"seen\">")
        .expect("the driver came to its end");
    let seen = &dom[start + "<pre id=\"seen\">".len()..];
    let seen = &seen[..seen.find("</pre>").unwrap()];
    let seen = seen
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&seen).unwrap()
}

#[test]
fn figures_answer_and_nothing_is_fetched() {
    let Some(browser) = needs::tool(Need::Browser) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = StudyReport::new(&inputs()).html().unwrap();
    let seen = used(browser, folder.path(), &page);
    assert_eq!(seen["problems"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["requests"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["hover"], seen["words"]);
    for part in ["128KiB", "1MiB", "105 MB/s", "n = 8", "device"] {
        assert!(
            seen["hover"].as_str().unwrap().contains(part),
            "{part}: {seen}"
        );
    }
    assert_eq!(seen["away"], "");
    assert_eq!(seen["confused"], 0);
    assert!(
        seen["home"].as_str().unwrap().contains("128KiB, 4KiB"),
        "{seen}"
    );
    assert!(
        seen["right"].as_str().unwrap().contains("128KiB, 1MiB"),
        "{seen}"
    );
    assert!(
        seen["up"].as_str().unwrap().contains("1MiB, 1MiB"),
        "{seen}"
    );
    assert_eq!(seen["escape"], "");
    assert_eq!(
        (&seen["row"], &seen["target"]),
        (&"e1-c4".into(), &1.into())
    );
    assert_eq!(seen["cited"], seen["finding"], "{seen}");
    assert!(seen["marks"].as_u64().unwrap() > 0, "{seen}");
    assert_eq!(
        seen["unsorted"],
        serde_json::json!(["4KiB", "1MiB", "4MiB", "4KiB", "1MiB", "4MiB"])
    );
    assert_eq!(
        seen["ascending"],
        serde_json::json!(["4KiB", "4KiB", "1MiB", "1MiB", "4MiB", "4MiB"])
    );
    assert_eq!(
        seen["descending"],
        serde_json::json!(["4MiB", "4MiB", "1MiB", "1MiB", "4KiB", "4KiB"])
    );
    assert_eq!(
        (&seen["all"], &seen["some"]),
        (&6.into(), &3.into()),
        "{seen}"
    );
    assert!(seen["texts"].as_u64().unwrap() > 10, "{seen}");
    assert_eq!(seen["longer"], serde_json::json!([]), "{seen}");
}

/// Keeps the faults that axe-core finds in the page, and whether it is dark.
const AUDIT: &str = "<script>
for (const details of document.querySelectorAll('details')) details.open = true;
axe.run().then(({ violations }) => {
  const seen = {
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    violations: violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))]),
  };
  const out = document.createElement('pre');
  out.id = 'seen';
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>";

#[test]
fn axe_finds_nothing_wrong_in_light_and_dark() {
    let Some(browser) = needs::tool(Need::Browser) else {
        return;
    };
    let Some(axe) = std::env::var_os("IOLAB_AXE") else {
        return needs::skip(Need::Axe, "the variable is not set");
    };
    let axe = fs::read_to_string(axe).unwrap();
    let mut study = crate::overview::study();
    study.extend(inputs());
    let studies = [study, pages::two_disks(), pages::soak(), pages::stages()];
    let pages = studies.iter().map(|study| StudyReport::new(study).html());
    let all: Vec<String> = pages.map(Result::unwrap).collect();
    for (page, is_dark) in all.iter().flat_map(|page| [(page, false), (page, true)]) {
        let audit = format!("<script>{axe}</script>{AUDIT}</body>");
        let (start, end) = page.rsplit_once("</body>").unwrap();
        // The policy of a page forbids scripts from elsewhere.
        let start = start.replacen(
            "http-equiv=\"Content-Security-Policy\"",
            "name=\"policy\"",
            1,
        );
        let page = format!("{start}{audit}{end}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audited.html");
        fs::write(&file, &page).unwrap();
        let scheme = match is_dark {
            true => "--blink-settings=preferredColorScheme=0",
            false => "--blink-settings=preferredColorScheme=1",
        };
        let dom = dom(
            browser,
            folder.path(),
            &file,
            &["--window-size=1280,900", scheme],
        );
        let seen = seen_in(&dom);
        assert_eq!(seen["dark"], is_dark, "{seen}");
        assert_eq!(seen["violations"], serde_json::json!([]), "{seen:#}");
    }
}

/// The document that a browser makes from a file, after its scripts.
fn dom(browser: &str, folder: &Path, file: &Path, options: &[&str]) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--virtual-time-budget=15000", "--dump-dom"])
        .args(options)
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Positions of the parts of a page in a window of this size, and the effects of its links. A frame stands for
/// the window, since no browser makes its own as narrow as a telephone.
fn laid_out(browser: &str, page: &str, width: u32, height: u32) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.html"), page).unwrap();
    let frame = format!(
        "<!DOCTYPE html><body style=\"margin:0\"><iframe src=\"page.html\" style=\"border:0;width:{width}px;height:{height}px\"></iframe>
<script>
document.querySelector('iframe').addEventListener('load', (event) => {{
  const inner = event.target.contentDocument;
  const box = (place) => {{
    const part = inner.querySelector(place);
    if (!part) return null;
    const at = part.getBoundingClientRect();
    return [at.left, at.top, at.right, at.bottom];
  }};
  const seen = {{ title: box('h1'), badge: box('#trust'), glance: box('#glance table'), found: box('#found') }};
  seen.across = inner.documentElement.scrollWidth;
  const links = [...inner.querySelectorAll('nav a')];
  seen.links = links.length;
  seen.lead = links.filter((link) => inner.querySelector('section' + link.getAttribute('href'))).length;
  seen.evidence = inner.querySelector(inner.querySelector('#trust a').getAttribute('href')) !== null;
  const out = document.createElement('pre');
  out.id = 'seen';
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
}});
</script></body>"
    );
    let file = folder.path().join("frame.html");
    fs::write(&file, frame).unwrap();
    let options = ["--allow-file-access-from-files", "--window-size=1400,1000"];
    seen_in(&dom(browser, folder.path(), &file, &options))
}

#[test]
fn the_first_screen_shows_the_answer() {
    let Some(browser) = needs::tool(Need::Browser) else {
        return;
    };
    let inputs = crate::overview::study();
    let page = StudyReport::new(&inputs).html().unwrap();
    for (width, height) in [(1280, 800), (390, 844)] {
        let seen = laid_out(browser, &page, width, height);
        let (across, down) = (f64::from(width), f64::from(height));
        let side = |part: &str, side: usize| seen[part][side].as_f64().unwrap();
        for part in ["title", "badge", "glance"] {
            assert!(side(part, 3) <= down, "{part} at {width}: {seen}");
            assert!(side(part, 2) <= across, "{part} at {width}: {seen}");
            assert!(side(part, 2) > side(part, 0), "{part} at {width}: {seen}");
        }
        assert!(seen["across"].as_f64().unwrap() <= across, "{seen}");
        assert!(seen["links"].as_u64() > Some(6), "{seen}");
        assert_eq!(seen["links"], seen["lead"], "{seen}");
        assert_eq!(seen["evidence"], true, "{seen}");
    }
}

#[test]
fn the_article_compiles() {
    let Some(latex) = needs::tool(Need::Latex) else {
        return;
    };
    // No line breaks within hostile names.
    for (inputs, widest_pt) in [
        (inputs(), f64::INFINITY),
        (crate::overview::study(), 10.0),
        (pages::two_disks(), 10.0),
        (pages::soak(), 10.0),
        (pages::stages(), 10.0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bundle = StudyReport::new(&inputs).latex("lab").unwrap();
        assert!(bundle.figures.len() >= inputs.len(), "a figure for each");
        for (name, content) in &bundle.figures {
            fs::write(folder.path().join(name), content).unwrap();
        }
        fs::write(folder.path().join("lab.tex"), &bundle.text).unwrap();
        let output = Command::new(latex)
            .args(["-interaction=nonstopmode", "-halt-on-error", "lab.tex"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{log}");
        assert!(folder.path().join("lab.pdf").exists());
        let wide = log.lines().filter(|line| overfull_pt(line) > widest_pt);
        assert_eq!(wide.collect::<Vec<_>>(), [""; 0]);
    }
}

/// Points by which a line of LaTeX's log calls a box too wide or too high; 0 for other lines.
fn overfull_pt(line: &str) -> f64 {
    let over = line.strip_prefix("Overfull ");
    let over = over.and_then(|rest| rest.split_once('(')?.1.split_once("pt too"));
    over.map_or(0.0, |(points, _)| points.parse().expect("a number"))
}
