//! A run as text, in full: its question, tables, curves and findings.

use crate::notation::clean;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::equivalence::program_pairs;

use crate::block::{Block, Item, Look, Table, in_text};
use crate::chart::{Style, chart};
use crate::export::cells;
use crate::findings::interpretation::Interpretation;
use crate::{compare, comparison_table, table};

/// The tables of a run; the first one has its cells.
pub(crate) fn tables(analysis: &Analysis, interpretation: &Interpretation) -> Vec<Table> {
    let mut tables = vec![table::table(analysis)];
    tables.extend(
        program_pairs(analysis)
            .iter()
            .map(comparison_table::program_table),
    );
    tables.extend(comparison_table::tabled(analysis));
    tables.extend(cells::table_of_clients(analysis));
    tables.extend(interpretation.peers.iter().map(|peer| {
        let mut table = compare::table(peer);
        let sides = format!("base: {}, new: {}", peer.base, peer.new);
        table.notes.push(clean(&sides));
        table
    }));
    tables
}

/// The summary, the question, the tables, the chart and the findings of a run.
pub fn text(run: &AnalysedRun, interpretation: &Interpretation, style: &Style) -> String {
    let analysis = run.analysis();
    let lines = interpretation.conclusions.iter();
    let lines = lines.map(|line| Block::Paragraph(Look::Result, line.text.clone()));
    let question = Block::text(analysis.question.as_str());
    let mut tables = tables(analysis, interpretation)
        .into_iter()
        .map(Block::Table);
    let head: Vec<Block> = lines.chain([question]).chain(tables.next()).collect();
    let remarks = interpretation.peers.iter().flat_map(compare::remarks);
    let findings = interpretation.findings.iter();
    let texts = remarks.chain(findings.map(|finding| finding.text.clone()));
    let list = Block::list(texts.map(Item::of).collect());
    let rest: Vec<Block> = tables.chain([list]).collect();
    let chart = chart(analysis, style);
    in_text(&head, style.width) + &chart + "\n" + &in_text(&rest, style.width)
}
