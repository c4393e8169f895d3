//! The report as one page of HTML.

use askama::Template;
use iolab_spec::{Error, Result};

use super::data;
use super::method::{RULES, Rule};
use super::picture::{self, Picture};
use super::section::Section;
use super::statement::About;
use super::{Input, Report};
use crate::figure;

/// What the template shows. The template escapes every text; what stands there unescaped is our own style and script, and
/// JSON that was made safe.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report<'a>,
    views: Vec<View<'a>>,
    style: &'static str,
    figure_style: String,
    script: &'static str,
    data: String,
    rules: &'static [Rule],
}

/// A section with its figure.
struct View<'a> {
    section: &'a Section,
    picture: Option<Picture>,
}

/// The whole page.
pub(super) fn page<'a>(report: &'a Report<'a>) -> Result<String> {
    let view = |(section, input): (&'a Section, &Input)| View {
        section,
        picture: picture::on_page(&section.id, input),
    };
    let page = Page {
        report,
        views: report
            .sections
            .iter()
            .zip(report.inputs)
            .map(view)
            .collect(),
        figure_style: figure::style(),
        style: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        data: data::json(report.inputs),
        rules: RULES,
    };
    page.render()
        .map_err(|error| Error::failed(format!("the page cannot be put together: {error}")))
}
