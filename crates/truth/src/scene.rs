//! A target made for one scenario, with everything needed to remove it.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use needs::Need;

use crate::binary::binary;
use crate::cleanup::Cleanup;
use crate::files::is_memory;
use crate::fuse::{Behaviour, Mounted};
use crate::neighbours::{CgroupLimit, Neighbour};
use crate::system::{Made, Unmade, failed, needs_root};

/// Id of a user without files.
const NOBODY: u32 = 65534;

/// A target with its supports. Fields are dropped in the order of declaration: the cleanup process removes
/// files that the FUSE file system still serves.
#[derive(Debug)]
pub struct Scene {
    /// The target of iolab.
    pub target: PathBuf,
    /// The change in the middle of the run.
    pub turn: Option<TargetChange>,
    /// The limit for iolab.
    pub limit: Option<CgroupLimit>,
    /// Removes everything else.
    pub keeper: Cleanup,
    /// The FUSE file system with the target.
    pub fuse: Option<Mounted>,
    is_nobodys: bool,
    /// A copy of the binary, where the user of the scene cannot access the original.
    copy: Option<PathBuf>,
    folder: PathBuf,
}

/// A change of a target in the middle of a run.
#[derive(Debug)]
pub enum TargetChange {
    /// Another process starts to use the target.
    Noise(Neighbour),
    /// A file is truncated to this many bytes.
    Cut(PathBuf, u64),
}

impl TargetChange {
    /// Makes the change.
    ///
    /// # Errors
    ///
    /// A file cannot be truncated.
    pub fn happen(&self) -> io::Result<()> {
        match self {
            TargetChange::Noise(neighbour) => neighbour.begin(),
            TargetChange::Cut(path, bytes) => {
                let file = std::fs::File::options().write(true).open(path)?;
                file.set_len(*bytes)?;
            }
        }
        Ok(())
    }
}

impl Scene {
    /// An empty private folder on the disk of the build, which is the target until another is set.
    ///
    /// # Errors
    ///
    /// No folder can be made there, or it is in memory.
    pub fn new() -> Made<Self> {
        let at =
            std::env::var_os("IOLAB_TRUTH_DIR").map_or_else(build_folder, |dir| Ok(dir.into()))?;
        Self::within(&at)
    }

    fn within(at: &Path) -> Made<Self> {
        let keeper = Cleanup::new()?;
        let folder = private_folder(&keeper, at)?;
        if is_memory(&folder) {
            let why = "lies in memory; name a folder on a disk in IOLAB_TRUTH_DIR";
            let why = format!("{} {why}", at.display());
            return Err(Unmade::Missing(Need::Disk, why));
        }
        Ok(Self {
            target: folder.clone(),
            turn: None,
            limit: None,
            keeper,
            fuse: None,
            is_nobodys: false,
            copy: None,
            folder,
        })
    }

    /// A scene in a folder that every user can access: next to the build, or among temporary files if that is
    /// private.
    ///
    /// # Errors
    ///
    /// There is no such folder on a disk.
    pub fn open_to_all() -> Made<Self> {
        let own = Self::new()?;
        if own.is_reached()? {
            return Ok(own);
        }
        for place in ["/var/tmp", "/tmp"] {
            match Self::within(Path::new(place)) {
                Ok(scene) if scene.is_reached()? => return Ok(scene),
                _ => {}
            }
        }
        let why = "no folder on a disk can be reached".to_owned();
        Err(Unmade::Missing(Need::OrdinaryUser, why))
    }

    /// Whether a user without files can access the folder.
    fn is_reached(&self) -> Made<bool> {
        set_mode(&self.folder, 0o755)?;
        let mut list = Command::new("ls");
        list.arg(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = list.uid(NOBODY).gid(NOBODY).status();
        Ok(status.map_err(failed("ls"))?.success())
    }

    /// The private folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Another private folder, in memory.
    ///
    /// # Errors
    ///
    /// `/dev/shm` is not a tmpfs or cannot be written.
    pub fn folder_in_memory(&self) -> Made<PathBuf> {
        let folder = private_folder(&self.keeper, Path::new("/dev/shm"));
        let folder = folder.map_err(|why| why.lacking(Need::Shm))?;
        match is_memory(&folder) {
            true => Ok(folder),
            false => Err(Unmade::Missing(Need::Shm, "it is not a tmpfs".to_owned())),
        }
    }

    /// A scene whose target is a private folder in memory.
    ///
    /// # Errors
    ///
    /// As [`Self::new`] and [`Self::folder_in_memory`].
    pub fn in_memory() -> Made<Self> {
        let scene = Self::new()?;
        let folder = scene.folder_in_memory()?;
        Ok(scene.on(folder))
    }

    /// A new folder in it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn subfolder(&self, name: &str) -> Made<PathBuf> {
        let path = self.folder().join(name);
        std::fs::create_dir(&path).map_err(failed(path.display()))?;
        Ok(path)
    }

    /// A command in the scene's folder, with the scene's limit.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match &self.limit {
            None => Command::new(program),
            Some(limit) => {
                // The shell enters the limit and becomes the program, so that no other process is limited.
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

    /// Runs such a command to its end; if this process ends first, the cleanup process ends the command.
    ///
    /// # Errors
    ///
    /// It cannot be started.
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

    /// Makes tools run as a user without files, who may write to the scene's folder.
    ///
    /// # Errors
    ///
    /// That user cannot access the folder; see [`Self::open_to_all`].
    pub fn as_nobody(mut self) -> Made<Self> {
        needs_root()?;
        set_mode(&self.folder, 0o777)?;
        self.is_nobodys = true;
        let tests = |scene: &Self, flag: &str, path: &Path| {
            let mut test = scene.command(Path::new("test"));
            let status = test.arg(flag).arg(path).status();
            Ok::<bool, Unmade>(status.map_err(failed("test"))?.success())
        };
        if !tests(&self, "-x", binary())? {
            let copy = self.folder.join("iolab");
            std::fs::copy(binary(), &copy).map_err(failed(copy.display()))?;
            self.copy = Some(copy);
        }
        match tests(&self, "-r", &self.target)? {
            true => Ok(self),
            false => Err(Unmade::Failed(format!(
                "user {NOBODY} cannot read {}",
                self.target.display()
            ))),
        }
    }

    /// The binary under test, or a copy that the user of the scene can access.
    pub fn binary(&self) -> &Path {
        self.copy.as_deref().unwrap_or_else(|| binary())
    }

    /// Checks that FUSE file systems can be mounted.
    ///
    /// # Errors
    ///
    /// FUSE file systems cannot be mounted.
    pub fn can_mount_fuse(&self) -> Made<()> {
        let at = tempfile::tempdir_in(self.folder()).map_err(failed("a folder"))?;
        let smallest = Behaviour {
            bytes: 4096,
            ..Behaviour::default()
        };
        drop(Mounted::new(&self.keeper, at.path(), smallest)?);
        // Already unmounted.
        self.keeper.forget();
        Ok(())
    }

    /// A scene on a FUSE file system with this behaviour.
    ///
    /// # Errors
    ///
    /// It cannot be mounted.
    pub fn on_fuse(behaviour: Behaviour) -> Made<Self> {
        let mut scene = Self::new()?;
        let at = scene.subfolder("served")?;
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

fn set_mode(path: &Path, mode: u32) -> Made<()> {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).map_err(failed(path.display()))
}

/// A new folder that the cleanup process removes.
fn private_folder(keeper: &Cleanup, at: &Path) -> Made<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("iolab-truth-")
        .tempdir_in(at)
        .map_err(failed(at.display()))?
        .keep();
    keeper.remove(&folder);
    Ok(folder)
}

/// Folder that the running program was built in.
fn build_folder() -> Made<PathBuf> {
    let program = std::env::current_exe().map_err(failed("own path"))?;
    let parent = program.parent().map(Path::to_owned);
    parent.ok_or_else(|| Unmade::Failed("own folder is unknown".to_owned()))
}
