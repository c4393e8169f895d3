//! One file per command.

mod compare;
mod completions;
mod doctor;
mod export;
mod fit;
mod import;
mod list;
mod model;
mod plot;
mod report;
mod resume;
mod run;
mod serve;
mod show;
mod slo;
mod stats;
mod study;
mod table;

use std::path::Path;

use iolab_analysis::analysed::AnalysedRun;
use iolab_spec::Result;

use crate::arguments::Command;
use crate::exit::Outcome;

/// Carries a command out.
pub(crate) fn carry_out(command: Command) -> Outcome {
    match command {
        Command::Study(options) => study::study(&options),
        Command::Run(options) => run::run(&options),
        Command::Fit(options) => fit::fit(&options),
        Command::List(options) => list::list(&options),
        Command::Show(options) => show::show(&options),
        Command::Table(options) => table::table(&options),
        Command::Import(options) => import::import(&options),
        Command::Plot(options) => plot::plot(&options),
        Command::Resume(options) => resume::resume(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Stats(options) => stats::stats(&options),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Report(options) => report::report(&options),
        Command::Export(options) => export::export(&options),
        Command::Model(options) => model::model(&options),
        Command::Serve(options) => serve::serve(options),
        Command::Completions(options) => completions::completions(&options),
    }
}

/// A run file, analysed.
fn read_run(path: &Path) -> Result<AnalysedRun> {
    iolab_runfile::read(path).map(AnalysedRun::of)
}
