//! Overlays, as used for the root of most containers.

use std::path::{Path, PathBuf};

use needs::Need;

use crate::device::{mount, mount_at};
use crate::files::noise;
use crate::scene::Scene;
use crate::system::{Made, failed, needs_root};

/// An overlay, with the folder of its layers.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Mount point of the overlay.
    pub root: PathBuf,
    layers: PathBuf,
}

impl Overlay {
    /// Mounts a folder below a new upper layer.
    ///
    /// # Errors
    ///
    /// No root, or no overlayfs in the kernel.
    pub fn over(scene: &Scene, name: &str, lower: &Path) -> Made<Self> {
        needs_root()?;
        let layers = scene.subfolder(&format!("{name}-layers"))?;
        Self::with_upper(scene, name, lower, &layers)
    }

    /// Mounts a folder below a new upper layer in an existing folder.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::over`].
    pub fn with_upper(scene: &Scene, name: &str, lower: &Path, layers: &Path) -> Made<Self> {
        needs_root()?;
        let [upper, work] = ["upper", "work"].map(|name| layers.join(name));
        for folder in [&upper, &work] {
            std::fs::create_dir(folder).map_err(failed(folder.display()))?;
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let root = mount(scene, name, &["-t", "overlay", "-o", &options, "overlay"]);
        let root = root.map_err(|why| why.lacking(Need::Overlay))?;
        Ok(Self {
            root,
            layers: layers.to_owned(),
        })
    }

    /// Mounts an empty file system over the upper layer, so that its path leads nowhere, as in a container.
    ///
    /// # Errors
    ///
    /// It is not permitted.
    pub fn hide_upper(&self, scene: &Scene) -> Made<()> {
        hide(scene, &self.layers)
    }
}

/// Mounts an empty file system over a folder.
///
/// # Errors
///
/// It is not permitted.
pub fn hide(scene: &Scene, folder: &Path) -> Made<()> {
    let hidden = mount_at(scene, folder, &["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
    hidden.map_err(|why| why.lacking(Need::Mount))
}

/// Bind-mounts a folder at a second path.
///
/// # Errors
///
/// It is not permitted.
pub fn bound(scene: &Scene, name: &str, folder: &Path) -> Made<PathBuf> {
    let at = mount(scene, name, &["--bind", &folder.display().to_string()]);
    at.map_err(|why| why.lacking(Need::Mount))
}

/// A new folder with a file of incompressible data, `data`: a lower layer.
///
/// # Errors
/// It cannot be made.
pub fn lower(scene: &Scene, bytes: u64) -> Made<PathBuf> {
    let folder = scene.subfolder("lower")?;
    noise(folder.join("data"), bytes)?;
    Ok(folder)
}
