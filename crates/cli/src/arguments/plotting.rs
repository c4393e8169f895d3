//! The arguments of plot.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use iolab_figure::{Center, FigureKind, parse_length};
use iolab_report::layout::paragraph;
use iolab_workload::response::Metric;
use iolab_workload::units::parse_share;

const PLOT_HELP_END: &str = "\
Hollow marks: not all bytes came from the device. Options that a kind does not use are refused. The width is the width on paper: \
241pt is a column of many journals. The same files and options give the same bytes.";

/// Columns of the list of kinds: lines that clap does not break on a terminal.
const KINDS_WIDTH: u16 = 80;

/// The kinds of figures, and what holds for all of them.
fn plot_help() -> String {
    let kinds = FigureKind::ALL.iter();
    let lines = kinds.map(|kind| paragraph(kind.words(), &format!("  {kind:<12} "), KINDS_WIDTH));
    format!("Kinds:\n{}\n{PLOT_HELP_END}", lines.collect::<String>())
}

#[derive(Debug, Args)]
#[command(after_help = plot_help())]
pub(crate) struct Plot {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Figure to write: .svg, .pdf or .png; '-' for SVG to stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Kind of figure, see below; default: chosen from the data
    #[arg(long, value_parser = FigureKind::from_str)]
    pub(crate) kind: Option<FigureKind>,
    /// Factor on the x axis; 'run' for the files
    #[arg(long, value_name = "FACTOR")]
    pub(crate) x: Option<String>,
    #[arg(long, value_name = "QUANTITY", value_parser = Metric::from_str,
        help = Metric::help("on the y axis", ""))]
    pub(crate) y: Option<Metric>,
    /// Factor with one line per level; 'none' for no such factor
    #[arg(long, value_name = "FACTOR")]
    pub(crate) series: Option<String>,
    /// Factor with one panel per level
    #[arg(long, value_name = "FACTOR")]
    pub(crate) facet: Option<String>,
    /// Logarithmic x axis
    #[arg(long, conflicts_with = "linear_x")]
    pub(crate) log_x: bool,
    /// Linear x axis
    #[arg(long)]
    pub(crate) linear_x: bool,
    /// Logarithmic y axis
    #[arg(long, conflicts_with = "linear_y")]
    pub(crate) log_y: bool,
    /// Linear y axis
    #[arg(long)]
    pub(crate) linear_y: bool,
    /// Centre and bar of the trials of a cell: median or mean with a 95 % interval, quartiles, or sd (mean and standard deviation)
    #[arg(long, value_parser = Center::from_str, default_value = "median")]
    pub(crate) center: Center,
    /// Also draw every trial as a dot
    #[arg(long)]
    pub(crate) points: bool,
    /// Two levels of a factor to compare, for --kind ratio and p-values; optional when only one
    /// factor has two levels
    #[arg(long, value_name = "FACTOR[=LEVEL,LEVEL]")]
    pub(crate) by: Option<String>,
    /// Smallest change that matters, shaded in --kind ratio
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) margin: f64,
    /// Title above the figure
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Width on paper: 241pt, 85mm, 8.5cm, 3.35in
    #[arg(long, value_name = "LENGTH", default_value = "241pt", value_parser = parse_length)]
    pub(crate) width: f64,
    /// Height on paper; default: from the width
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    pub(crate) height: Option<f64>,
    /// Replace an existing figure, and nothing else
    #[arg(long)]
    pub(crate) force: bool,
}
