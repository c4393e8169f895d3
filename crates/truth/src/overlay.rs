//! Overlays, as the root of nearly every container is one.

use std::path::{Path, PathBuf};

use needs::Need;

use crate::device::{mount, mount_at};
use crate::files::noise;
use crate::scene::Scene;
use crate::system::{Made, failed, needs_root};

/// An overlay, and the folder that its layers lie in.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Where it is mounted.
    pub root: PathBuf,
    layers: PathBuf,
}

impl Overlay {
    /// Mounts a folder below a new upper layer.
    ///
    /// # Errors
    /// Without root, or where the kernel has no overlayfs.
    pub fn over(scene: &Scene, name: &str, lower: &Path) -> Made<Self> {
        needs_root()?;
        let layers = scene.subfolder(&format!("{name}-layers"))?;
        Self::with_upper(scene, name, lower, &layers)
    }

    /// The same, with the upper layer in a folder that is there.
    ///
    /// # Errors
    /// As [`Self::over`].
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

    /// Mounts something empty over the upper layer, so that its name leads nowhere, as in a container.
    ///
    /// # Errors
    /// When that is not allowed.
    pub fn hide_upper(&self, scene: &Scene) -> Made<()> {
        hide(scene, &self.layers)
    }
}

/// Mounts something empty over a folder.
///
/// # Errors
/// When that is not allowed.
pub fn hide(scene: &Scene, folder: &Path) -> Made<()> {
    let hidden = mount_at(scene, folder, &["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
    hidden.map_err(|why| why.lacking(Need::Mount))
}

/// Mounts a folder at a second place.
///
/// # Errors
/// When that is not allowed.
pub fn bound(scene: &Scene, name: &str, folder: &Path) -> Made<PathBuf> {
    let at = mount(scene, name, &["--bind", &folder.display().to_string()]);
    at.map_err(|why| why.lacking(Need::Mount))
}

/// A new folder with a file of incompressible data, `data`: a lower layer.
///
/// # Errors
/// When it cannot be made.
pub fn lower(scene: &Scene, bytes: u64) -> Made<PathBuf> {
    let folder = scene.subfolder("lower")?;
    noise(folder.join("data"), bytes)?;
    Ok(folder)
}
