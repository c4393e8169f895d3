//! The report as one page of HTML.

use askama::Template;
use iolab_lab::{Error, Result};

use super::Report;
use super::data;
use super::method::{RULES, Rule};

/// What the template shows. The template escapes every text; what stands there unescaped is our own style and script, and
/// JSON that was made safe.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report<'a>,
    style: &'static str,
    script: &'static str,
    data: String,
    rules: &'static [Rule],
}

/// The whole page.
pub(super) fn page(report: &Report<'_>) -> Result<String> {
    let page = Page {
        report,
        style: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        data: data::json(report.inputs),
        rules: RULES,
    };
    page.render()
        .map_err(|error| Error::failed(format!("the page cannot be put together: {error}")))
}
