//! Turns a drive's DiskSim files into a definition: `import DRIVE.parv TITLE SOURCE...` prints it.
//!
//! The `.parv` file names the `.diskspecs` file, that one the `.model` file, and that one the `.seek` file; all lie in
//! the same folder.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use iolab_diskmodel::build;
use iolab_diskmodel::definition::{Definition, PartDefinition, disksim};

/// The file that a line names after a key, in the folder of the first file.
fn named(folder: &Path, text: &str, key: &str) -> Result<Option<String>, Box<dyn Error>> {
    let line = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| line.split(key).nth(1));
    let Some(name) = line.map(|name| name.trim().trim_end_matches(',').trim()) else {
        return Ok(None);
    };
    let path = folder.join(name);
    Ok(Some(
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?,
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [parv, title, source @ ..] = &words[..] else {
        return Err("usage: import DRIVE.parv TITLE SOURCE...".into());
    };
    let folder = Path::new(parv).parent().unwrap_or(Path::new("."));
    let parv = std::fs::read_to_string(parv)?;
    let diskspecs =
        named(folder, &parv, "source ")?.ok_or("the .parv file names no .diskspecs file")?;
    let model =
        named(folder, &diskspecs, "source ")?.ok_or("the .diskspecs file names no .model file")?;
    let seek = named(folder, &model, "Full seek curve = ")?;
    let files = disksim::Files {
        model: &model,
        seek: seek.as_deref(),
        diskspecs: &diskspecs,
        parv: Some(&parv),
    };
    let imported = disksim::import(&files)?;
    for sentence in &imported.left_out {
        writeln!(std::io::stderr(), "left out: {sentence}")?;
    }
    let definition = Definition {
        title: title.clone(),
        source: source.to_vec(),
        model: PartDefinition::Disk(Box::new(imported.disk)),
    };
    build(&definition, 0)?;
    write!(std::io::stdout(), "{}", definition.to_toml()?)?;
    Ok(())
}
