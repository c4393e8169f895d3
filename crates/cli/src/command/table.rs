//! `iolab table`: what run files hold.

use std::io::Write;

use iolab_analysis::analysed::AnalysedRun;
use iolab_analysis::findings::cross_findings;
use iolab_analysis::interpretation::Interpretation;
use iolab_report::tidy::Format;
use iolab_report::{export, table as tables};
use iolab_spec::Result;

use crate::arguments::{Table, TableFormat};
use crate::command::read_run;
use crate::exit::Outcome;
use crate::output;

/// Writes the tables to stdout.
pub(crate) fn table(options: &Table) -> Outcome {
    let runs = options.files.iter().map(|path| read_run(path));
    let runs: Vec<AnalysedRun> = runs.collect::<Result<_>>()?;
    let analyses = runs.iter().map(AnalysedRun::analysis);
    let mut to = output::open(None)?;
    match options.format {
        TableFormat::Csv => export::cells(analyses, Format::Csv, &mut to)?,
        TableFormat::Json => export::cells(analyses, Format::Json, &mut to)?,
        TableFormat::Latex => {
            for analysis in analyses {
                writeln!(to, "{}", tables::latex(analysis))?;
            }
        }
        TableFormat::Markdown => {
            for analysis in analyses {
                writeln!(to, "{}", tables::markdown(analysis))?;
            }
        }
        TableFormat::Text => {
            for run in &runs {
                output::report(run, &Interpretation::of(run), &mut to)?;
                writeln!(to)?;
            }
            output::sentences(&cross_findings(analyses), output::style(), &mut to)?;
        }
    }
    Ok(to.flush()?)
}
