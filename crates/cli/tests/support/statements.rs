//! Statements of the formats of a report, without escapes.

/// Text with single spaces between its words.
pub(crate) fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The paragraphs of the list below a table.
pub(crate) fn of_text(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        if let Some(first) = line.strip_prefix("- ") {
            all.push(first.to_owned());
            continues = true;
        } else if let (true, Some(more), Some(last)) =
            (continues, line.strip_prefix("  "), all.last_mut())
        {
            last.push(' ');
            last.push_str(more);
        } else {
            continues = false;
        }
    }
    all.iter().map(|text| plain(text)).collect()
}

pub(crate) fn unescaped_markdown(text: &str) -> String {
    let text = text.replace('\\', "");
    plain(
        &text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

pub(crate) fn unescaped_html(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#39;", "'"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, c);
    }
    // Spaces in the notation of pages.
    for (shown, plain) in [("\u{202f}", ""), ("\u{a0}", " ")] {
        text = text.replace(shown, plain);
    }
    plain(&text)
}

pub(crate) fn unescaped_latex(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, plain) in [
        ("~", " "),
        ("\\,", ""),
        ("\\textless{}", "<"),
        ("\\textgreater{}", ">"),
        ("\\textquotesingle{}", "'"),
        ("\\textbar{}", "|"),
        ("{-}", "-"),
        ("{[}", "["),
        ("{]}", "]"),
        ("\\%", "%"),
        ("\\_", "_"),
        ("\\&", "&"),
        ("\\#", "#"),
    ] {
        text = text.replace(escaped, plain);
    }
    plain(&text)
}
