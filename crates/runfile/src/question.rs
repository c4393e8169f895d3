//! The question of a run in the tables `question` and `question_level`.

use std::path::Path;

use iolab_plan::experiment::Experiment;
use iolab_record::question::{Asked, Fit, Question, QuestionKind};
use iolab_record::tables::{LevelRow, QUESTION, QUESTION_LEVEL, QuestionRow};
use iolab_workload::Result;
use iolab_workload::names::check_file_name;
use iolab_workload::response::{LEVELS_MAX, Need};

use super::error::damaged;
use super::rows::Tables;

/// Most workloads of a requirement, and most remarks about its limits.
const TEXTS_MAX: usize = 100;

/// The question about service levels in the definition of an experiment.
pub fn asked_by(experiment: &Experiment) -> Option<Question> {
    let (of, levels) = match (&experiment.seek, &experiment.hold) {
        (Some(levels), _) => (Asked::Limit, levels),
        (None, Some(levels)) => (Asked::Cells, levels),
        (None, None) => return None,
    };
    Some(Question::of_levels(of, levels))
}

pub(super) fn write(tables: &Tables<'_>, question: &Question) -> Result<()> {
    let (kind, fit) = (question.kind(), question.clone().into_fit());
    tables.insert(&QUESTION, &QuestionRow { kind, fit })?;
    for (id, need) in (0..).zip(&question.needs) {
        let row = LevelRow {
            id,
            level: need.level.to_string(),
            source: need.source.clone(),
            wording: need.wording.clone(),
            remedy: need.remedy.clone(),
        };
        tables.insert(&QUESTION_LEVEL, &row)?;
    }
    Ok(())
}

/// Refuses texts that no requirement has.
fn check_fit(fit: &Fit) -> std::result::Result<(), &'static str> {
    if fit.workloads.len() > TEXTS_MAX || fit.limits.len() > TEXTS_MAX {
        return Err("has too many workloads or limits");
    }
    let mut names = fit.workloads.iter().chain([&fit.requirement]);
    if names.any(|name| check_file_name(name).is_err()) || !fit.workloads.contains(&fit.workload) {
        return Err("has names that cannot be");
    }
    Ok(())
}

/// The question in rows, which may come from elsewhere and are checked.
pub(super) fn of_rows(
    path: &Path,
    mut questions: Vec<QuestionRow>,
    levels: Vec<LevelRow>,
) -> Result<Option<Question>> {
    let wrong = |what| damaged(path, format!("the question {what}"));
    let Some(row) = questions.pop() else {
        return match levels.is_empty() {
            true => Ok(None),
            false => Err(wrong("has levels, and is missing")),
        };
    };
    if !questions.is_empty() || levels.is_empty() || levels.len() > LEVELS_MAX {
        return Err(wrong("is asked twice, or has no levels or too many"));
    }
    let of = match (row.kind, row.fit) {
        (QuestionKind::Fit, Some(fit)) => {
            check_fit(&fit).map_err(wrong)?;
            Asked::Fit(fit)
        }
        (QuestionKind::Cells, None) => Asked::Cells,
        (QuestionKind::Limit, None) => Asked::Limit,
        _ => return Err(wrong("is of another kind than its columns")),
    };
    let needs = levels.into_iter().map(|row| {
        Ok(Need {
            level: row.level.parse()?,
            source: row.source,
            wording: row.wording,
            remedy: row.remedy,
        })
    });
    Ok(Some(Question {
        of,
        needs: needs.collect::<Result<_>>()?,
    }))
}
