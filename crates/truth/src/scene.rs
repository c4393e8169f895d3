//! A target that was made for one scenario, with everything that takes it down again.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::binary::binary;
use crate::cleanup::Cleanup;
use crate::files::is_memory;
use crate::fuse::{Behaviour, Mounted};
use crate::neighbours::{CgroupLimit, Neighbour};
use crate::system::{Made, Missing, missing};

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// A target and what holds it up. Fields are dropped in the order of declaration: the keeper takes down what the file
/// system in user space still serves.
#[derive(Debug)]
pub struct Scene {
    /// What iolab is pointed at.
    pub target: PathBuf,
    /// What changes in mid-run.
    pub turn: Option<Turn>,
    /// Which limit iolab runs under.
    pub limit: Option<CgroupLimit>,
    /// Takes down everything else that was made.
    pub keeper: Cleanup,
    /// The file system in user space that the target lies on.
    pub fuse: Option<Mounted>,
    is_nobodys: bool,
    folder: PathBuf,
}

/// What changes about a target in the middle of a run.
#[derive(Debug)]
pub enum Turn {
    /// Somebody else begins to use it.
    Noise(Neighbour),
    /// A file is cut to so many bytes.
    Cut(PathBuf, u64),
}

impl Turn {
    /// Has it happen.
    ///
    /// # Errors
    /// When a file cannot be cut.
    pub fn happen(&self) -> io::Result<()> {
        match self {
            Turn::Noise(neighbour) => neighbour.begin(),
            Turn::Cut(path, bytes) => {
                let file = std::fs::File::options().write(true).open(path)?;
                file.set_len(*bytes)?;
            }
        }
        Ok(())
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
        let keeper = Cleanup::new()?;
        let folder = private_folder(&keeper, &at)?;
        if is_memory(&folder) {
            return Err(Missing(format!(
                "{} lies in memory; name a folder on a disk in IOLAB_TRUTH_DIR",
                at.display()
            )));
        }
        Ok(Self {
            target: folder.clone(),
            turn: None,
            limit: None,
            keeper,
            fuse: None,
            is_nobodys: false,
            folder,
        })
    }

    /// The private folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A further private folder, in memory.
    ///
    /// # Errors
    /// Where `/dev/shm` is no tmpfs or cannot be written.
    pub fn folder_in_memory(&self) -> Made<PathBuf> {
        let folder = private_folder(&self.keeper, Path::new("/dev/shm"))?;
        match is_memory(&folder) {
            true => Ok(folder),
            false => Err(Missing("/dev/shm is not a tmpfs here".to_owned())),
        }
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

    /// A command in the scene's folder, under the scene's limit where there is one.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match &self.limit {
            None => Command::new(program),
            Some(limit) => {
                // The shell comes under the limit and turns into the program; no other process does.
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
        if self.is_nobodys {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Carries such a command out and waits for its end; should this process end before, that process is ended too.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn carry_out(
        &self,
        command: &mut Command,
        meanwhile: impl FnOnce(&mut Child),
    ) -> io::Result<Output> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        self.keeper.end(&child);
        meanwhile(&mut child);
        let output = child.wait_with_output();
        self.keeper.forget();
        output
    }

    /// The scene with tools that run as a user who owns nothing of it, but may write into its folder.
    ///
    /// # Errors
    /// Where that user cannot reach the folder or the binary.
    pub fn as_nobody(mut self) -> Made<Self> {
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(self.folder(), all).map_err(missing(self.folder.display()))?;
        self.is_nobodys = true;
        let script = "test -w . && test -r \"$0\" && test -x \"$1\"";
        let reaches = self
            .command(Path::new("sh"))
            .args(["-c", script])
            .arg(&self.target)
            .arg(binary())
            .status()
            .map_err(missing("another user"))?;
        match reaches.success() {
            true => Ok(self),
            false => Err(Missing(format!(
                "user {NOBODY} cannot reach {} or {}",
                self.target.display(),
                binary().display()
            ))),
        }
    }

    /// A scene on a file system in user space that behaves so.
    ///
    /// # Errors
    /// When it cannot be mounted here.
    pub fn on_fuse(behaviour: Behaviour) -> Made<Self> {
        let mut scene = Self::new()?;
        let at = scene.subfolder("mount")?;
        let mounted = Mounted::new(&scene.keeper, &at, behaviour)?;
        let file = mounted.file();
        scene.fuse = Some(mounted);
        Ok(scene.on(file))
    }

    /// The scene with this target.
    #[must_use]
    pub fn on(mut self, target: PathBuf) -> Self {
        self.target = target;
        self
    }
}

/// A new folder that the keeper removes.
fn private_folder(keeper: &Cleanup, at: &Path) -> Made<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("iolab-truth-")
        .tempdir_in(at)
        .map_err(missing(at.display()))?
        .keep();
    keeper.remove(&folder);
    Ok(folder)
}

/// The folder that the running program was built in.
fn build_folder() -> Made<PathBuf> {
    let program = std::env::current_exe().map_err(missing("own path"))?;
    let parent = program.parent().map(Path::to_owned);
    parent.ok_or_else(|| Missing("own folder is unknown".to_owned()))
}
