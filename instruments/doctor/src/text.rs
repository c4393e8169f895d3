//! The findings of the doctor, as text and as JSON.

use std::io::{self, Write};

use iolab_report::layout::{WIDTH_MIN, paragraph};
use iolab_report::rows::json_object;
use iolab_workload::escape_control::escape_control;
use serde_json::{Map, Value, json};

use super::{Diagnosis, Finding, Severity};

/// Version of the JSON object; new fields do not change it.
const SCHEMA: u32 = 1;
/// Columns before the text: indent, longest severity, gap.
const INDENT: usize = 2;
const LABEL: usize = "worth knowing".len() + 2;

/// The findings by topic, for a terminal of `width` columns. Commands stay on one line, to be copied.
pub fn text(diagnosis: &Diagnosis, width: u16, colour: bool) -> String {
    let mut text = format!(
        "{} ({})\n",
        escape_control(&diagnosis.target),
        diagnosis.kind
    );
    let mut topic = None;
    for finding in &diagnosis.findings {
        if topic != Some(finding.topic) {
            topic = Some(finding.topic);
            text.push_str(&format!("\n{}\n", finding.topic));
        }
        push(&mut text, finding, width, colour);
    }
    let count = |severity| diagnosis.count(severity);
    text.push_str(&format!(
        "\n{} must fix, {} worth knowing, {} fine\n",
        count(Severity::MustFix),
        count(Severity::WorthKnowing),
        count(Severity::Fine)
    ));
    text
}

fn push(text: &mut String, finding: &Finding, width: u16, colour: bool) {
    let label = format!("{:<LABEL$}", finding.severity.to_string());
    let mark = format!("{:INDENT$}{label}", "");
    let lines = paragraph(&escape_control(&finding.what), &mark, width.max(WIDTH_MIN));
    let code = match finding.severity {
        Severity::Fine => "32",
        Severity::WorthKnowing => "33",
        Severity::MustFix => "1;31",
    };
    let coloured = format!("\x1b[{code}m{label}\x1b[0m");
    text.push_str(&match colour {
        true => lines.replacen(&label, &coloured, 1),
        false => lines,
    });
    if let Some(command) = &finding.remedy {
        let margin = " ".repeat(INDENT + LABEL);
        text.push_str(&format!("{margin}$ {}\n", escape_control(command)));
    }
}

/// Writes a JSON object with the findings, their number by severity, and the environment.
///
/// # Errors
///
/// Errors of `to`.
pub fn json(diagnosis: &Diagnosis, to: &mut dyn Write) -> io::Result<()> {
    let count = |severity| diagnosis.count(severity);
    let environment: Map<String, Value> = diagnosis
        .environment
        .iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    let whole = json!({
        "schema": SCHEMA,
        "target": diagnosis.target,
        "kind": diagnosis.kind,
        "must_fix": count(Severity::MustFix),
        "worth_knowing": count(Severity::WorthKnowing),
        "fine": count(Severity::Fine),
        "findings": diagnosis.findings,
        "environment": environment,
    });
    json_object(&whole, to)
}
