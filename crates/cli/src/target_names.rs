//! The names that the user gives to targets, for tables, curves and sentences.

use std::path::{Path, PathBuf};

use iolab_record::RunRecord;
use iolab_record::environment::{Environment, KEYS};
use iolab_workload::{Error, Result};

/// Longest name, characters: it heads a column.
const NAME_MAX: usize = 40;

/// Gives the targets of a finished run these names, instead of their present ones.
pub(crate) fn rename(record: &mut RunRecord, names: Environment) {
    let others = std::mem::take(&mut record.environment).into_iter();
    record.environment = others
        .filter(|(key, _)| names.text(key).is_none())
        .collect();
    record.environment.extend(names);
}

/// The names of targets in the form of a run file, in their order.
fn environment(names: Vec<Option<String>>) -> Environment {
    let mut all = Environment::default();
    for (number, name) in names.into_iter().enumerate() {
        let mut own = Environment::default();
        own.put(&KEYS.target_name, name);
        match number {
            0 => all.extend(own),
            _ => all.put_target(number, own),
        }
    }
    all
}

/// Gives targets the names that the user asks for, each as `TARGET=NAME`; `all` are the targets of each part of the
/// command. The names of each part are in the form of a run file.
///
/// # Errors
/// Of kind usage: a word that names no target, or several; a name that cannot head a column, or that two targets have.
pub(crate) fn give(asked: &[String], all: &[Vec<PathBuf>]) -> Result<Vec<Environment>> {
    let empty = |targets: &Vec<PathBuf>| vec![None; targets.len()];
    let mut names: Vec<Vec<Option<String>>> = all.iter().map(empty).collect();
    let mut given: Vec<&str> = Vec::new();
    for text in asked {
        let wrong = |what: &str, hint: &str| {
            Error::usage(format!("--name {text}: {what}")).hint(hint.to_owned())
        };
        let Some((target, name)) = text.rsplit_once('=') else {
            return Err(wrong(
                "no target and name",
                "write --name TARGET=NAME: --name /mnt/a=WD-Red",
            ));
        };
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control)
        {
            return Err(wrong(
                "not a name",
                "give 1 to 40 characters without control characters: --name /mnt/a=WD-Red",
            ));
        }
        if given.contains(&name) {
            return Err(wrong(
                "another target has this name",
                "give each target a name of its own",
            ));
        }
        given.push(name);
        let of_part = |(part, targets): (usize, &'_ Vec<PathBuf>)| {
            let is_named = |(_, path): &(usize, &PathBuf)| is_named(path, target);
            let named = targets.iter().enumerate().filter(is_named);
            named
                .map(|(i, path)| (part, i, path.clone()))
                .collect::<Vec<_>>()
        };
        let found: Vec<_> = all.iter().enumerate().flat_map(of_part).collect();
        match found.as_slice() {
            [] => {
                return Err(wrong(
                    "there is no such target",
                    "name a TARGET of the command: --name /mnt/a=WD-Red",
                ));
            }
            // Several parts may have the same target.
            [(.., first), ..] if found.iter().all(|(.., path)| path == first) => {
                for (part, i, _) in found {
                    names[part][i] = Some(name.to_owned());
                }
            }
            _ => {
                return Err(wrong(
                    "several targets end so",
                    "write the path of one: --name /mnt/a=WD-Red",
                ));
            }
        }
    }
    Ok(names.into_iter().map(environment).collect())
}

/// Whether a word means a target: by its path, or by the end of its path.
fn is_named(path: &Path, word: &str) -> bool {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let ends = |text: &str| text == word || text.strip_prefix("model:") == Some(word);
    path.ends_with(word) || path.to_str().is_some_and(ends) || same(path, Path::new(word))
}
