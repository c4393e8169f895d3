//! A target that was made for one scenario, with everything that takes it down again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::device::{Limit, Neighbour};
use crate::files::is_memory;
use crate::fuse::Mounted;
use crate::system::{Made, Missing, Undo, missing};

/// A target and what holds it up. Fields are dropped in the order of declaration: what was made last goes first.
#[derive(Debug)]
pub struct Scene {
    /// What iolab is pointed at.
    pub target: PathBuf,
    /// Who else uses the device.
    pub neighbour: Option<Neighbour>,
    /// Which limit iolab runs under.
    pub limit: Option<Limit>,
    /// The file system in user space that the target lies on.
    pub fuse: Option<Mounted>,
    undo: Undos,
    elsewhere: Option<TempDir>,
    folder: TempDir,
}

/// Commands that are carried out last first.
#[derive(Debug, Default)]
struct Undos(Vec<Undo>);

impl Drop for Undos {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

impl Scene {
    /// An empty private folder on the disk that holds the build; it is the target until another is set.
    ///
    /// # Errors
    /// When no folder can be made there, or when that is memory.
    pub fn new() -> Made<Self> {
        let at =
            std::env::var_os("IOLAB_TRUTH_DIR").map_or_else(build_folder, |dir| Ok(dir.into()))?;
        let folder = tempfile::Builder::new()
            .prefix("iolab-truth-")
            .tempdir_in(&at)
            .map_err(missing(at.display()))?;
        if is_memory(folder.path()) {
            return Err(Missing(format!(
                "{} lies in memory; name a folder on a disk in IOLAB_TRUTH_DIR",
                at.display()
            )));
        }
        Ok(Self {
            target: folder.path().to_owned(),
            neighbour: None,
            limit: None,
            fuse: None,
            undo: Undos::default(),
            elsewhere: None,
            folder,
        })
    }

    /// The private folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn subfolder(&self, name: &str) -> Made<PathBuf> {
        let path = self.folder().join(name);
        std::fs::create_dir(&path).map_err(missing(path.display()))?;
        Ok(path)
    }

    /// Keeps what takes something down until the scene ends.
    pub fn keep(&mut self, undo: Undo) {
        self.undo.0.push(undo);
    }

    /// The scene with a second private folder, elsewhere.
    #[must_use]
    pub fn with_folder(mut self, folder: TempDir) -> Self {
        self.elsewhere = Some(folder);
        self
    }

    /// A command in the scene's folder, under the scene's limit where there is one.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match &self.limit {
            None => Command::new(program),
            Some(limit) => {
                // The shell comes under the limit and turns into the program; nobody else does.
                let mut shell = Command::new("sh");
                let script = "echo $$ > \"$0\" && exec \"$@\"";
                shell
                    .args(["-c", script])
                    .arg(limit.entrance())
                    .arg(program);
                shell
            }
        };
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// The scene with this target.
    #[must_use]
    pub fn on(mut self, target: PathBuf) -> Self {
        self.target = target;
        self
    }
}

/// The folder that the running program was built in.
fn build_folder() -> Made<PathBuf> {
    let program = std::env::current_exe().map_err(missing("own path"))?;
    let parent = program.parent().map(Path::to_owned);
    parent.ok_or_else(|| Missing("own folder is unknown".to_owned()))
}
