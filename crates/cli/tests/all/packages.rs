//! What `release/build` makes: of each architecture the Debian package, the tarball, the Python wheel and the image of a container are
//! installed, used and removed. Programs for another architecture run under qemu-user.
//!
//!     IOLAB_PACKAGES=target/package cargo test -p iolab --test all packages::

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use needs::Need;
use serde_json::{Value, json};

use crate::support::{folder, run};

/// A small run, but for its name and the folder that it measures.
const SMALL: [&str; 6] = ["--bs", "4k", "--size", "16M", "--budget", "3s"];

/// An architecture of processors.
struct Architecture {
    /// As Rust and Python name it.
    name: &'static str,
    /// As Debian, and those of containers name it.
    of_debian: &'static str,
    /// What runs its programs elsewhere.
    emulator: Need,
}

/// Packages of one architecture.
struct Packages {
    folder: PathBuf,
    architecture: &'static Architecture,
    /// The path of what runs their program; `None` where this machine does.
    emulator: Option<String>,
}

/// The tests of one architecture.
macro_rules! tests_of {
    ($module:ident, $name:literal, $of_debian:literal, $emulator:ident) => {
        mod $module {
            use super::*;

            const PACKAGES: Architecture = Architecture {
                name: $name,
                of_debian: $of_debian,
                emulator: Need::$emulator,
            };

            #[test]
            fn the_debian_package_is_installed_used_and_removed() {
                let _ = Packages::of(&PACKAGES).and_then(|packages| packages.debian_package());
            }

            #[test]
            fn the_tarball_is_unpacked_used_and_removed() {
                let _ = Packages::of(&PACKAGES).and_then(|packages| packages.tarball());
            }

            #[test]
            fn the_tarball_is_installed_by_cargo_binstall() {
                let _ = Packages::of(&PACKAGES).and_then(|packages| packages.binstall());
            }

            #[test]
            fn the_wheel_is_installed_used_and_removed() {
                let _ = Packages::of(&PACKAGES).and_then(|packages| packages.wheel());
            }

            #[test]
            fn the_image_of_a_container_is_built_and_run() {
                let _ = Packages::of(&PACKAGES).and_then(|packages| packages.image());
            }
        }
    };
}

tests_of!(x86_64, "x86_64", "amd64", QemuX86);
tests_of!(aarch64, "aarch64", "arm64", QemuArm64);

impl Packages {
    /// Those of an architecture, in the folder that `IOLAB_PACKAGES` names; a skip where there are none, or nothing runs their program.
    #[track_caller]
    fn of(architecture: &'static Architecture) -> Option<Self> {
        let Some(folder) = std::env::var_os("IOLAB_PACKAGES") else {
            needs::skip(Need::Packages, "the variable is not set");
            return None;
        };
        let folder = std::fs::canonicalize(folder).expect("the folder that is named");
        let emulator = match architecture.name == std::env::consts::ARCH {
            true => None,
            false => {
                let name = needs::tool(architecture.emulator)?;
                let found = succeeds(Command::new("which").arg(name));
                Some(found.trim().to_owned())
            }
        };
        Some(Self {
            folder,
            architecture,
            emulator,
        })
    }

    /// The file whose name ends so; a skip where only other architectures were built.
    #[track_caller]
    fn file(&self, end: &str) -> Option<PathBuf> {
        let files = std::fs::read_dir(&self.folder).expect("a folder");
        let files = files.map(|entry| entry.expect("readable").path());
        let is_wanted = |path: &PathBuf| path.to_string_lossy().ends_with(end);
        let found: Vec<PathBuf> = files.filter(is_wanted).collect();
        assert!(found.len() <= 1, "one version: {found:?}");
        if found.is_empty() {
            needs::skip(Need::Packages, format!("no file *{end} in the folder"));
        }
        found.into_iter().next()
    }

    /// A command of a program of this architecture, in a folder.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = match &self.emulator {
            None => Command::new(program),
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
        };
        command.current_dir(folder);
        command
    }

    /// Has a program of this architecture say its version and measure a folder.
    fn use_program(&self, program: &Path, folder: &Path) {
        let iolab = |words: &[&str]| succeeds(self.command(program, folder).args(words));
        let version = iolab(&["--version"]);
        assert_eq!(
            version.trim(),
            format!("iolab {}", env!("CARGO_PKG_VERSION"))
        );
        iolab(&[&["run", "read-random", ".", "-o", "r.iolab"], &SMALL[..]].concat());
        has_one_cell(folder, "r.iolab");
        std::fs::remove_file(folder.join("r.iolab")).expect("it was written");
    }

    #[track_caller]
    fn debian_package(&self) -> Option<()> {
        let package = self.file(&format!("_{}.deb", self.architecture.of_debian))?;
        if let Some(lintian) = needs::tool(Need::Lintian) {
            let mut lintian = Command::new(lintian);
            succeeds(lintian.args(["--fail-on", "error"]).arg(&package));
        }
        needs::tool(Need::Dpkg)?;
        let place = folder();
        let (root, used) = (place.path().join("root"), place.path().join("used"));
        std::fs::create_dir(&used).expect("a new folder");
        let admin = root.join("var/lib/dpkg");
        for part in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(admin.join(part)).expect("a new folder");
        }
        for file in ["status", "available"] {
            std::fs::write(admin.join(file), "").expect("a new folder");
        }
        let dpkg = |words: &[&OsStr]| {
            let mut dpkg = Command::new("dpkg");
            for forced in ["not-root", "depends", "script-chrootless", "architecture"] {
                dpkg.arg(format!("--force-{forced}"));
            }
            succeeds(dpkg.arg("--root").arg(&root).args(words))
        };
        dpkg(&["--install".as_ref(), package.as_os_str()]);
        self.use_program(&root.join("usr/bin/iolab"), &used);
        for file in [
            "usr/share/man/man1/iolab-run.1",
            "usr/share/bash-completion/completions/iolab",
            "usr/share/zsh/vendor-completions/_iolab",
            "usr/share/fish/vendor_completions.d/iolab.fish",
            "usr/share/doc/iolab/SAFETY.md",
            "usr/share/doc/iolab/COPYING",
            "usr/share/doc/iolab/COPYRIGHT",
        ] {
            let mut forms = [file.to_owned(), format!("{file}.gz")].into_iter();
            let there = forms.any(|form| root.join(form).exists());
            assert!(there, "{file} is missing");
        }
        let installed = format!("iolab:{}", self.architecture.of_debian);
        dpkg(&["--remove".as_ref(), installed.as_ref()]);
        assert!(!root.join("usr").exists());
        Some(())
    }

    #[track_caller]
    fn tarball(&self) -> Option<()> {
        let place = folder();
        let program = self.unpacked(place.path())?;
        let top = program.parent().expect("a folder").to_owned();
        for file in [
            "man/iolab-run.1", "completions/iolab.bash", "completions/_iolab",
            "completions/iolab.fish", "docs/SAFETY.md", "iolab.cdx.json", "LICENSE-MIT",
            "LICENSE-APACHE", "COPYING", "COPYRIGHT",
        ] {
            assert!(top.join(file).exists(), "{file} is missing");
        }
        // As INSTALL.md has it.
        let bin = place.path().join("bin");
        std::fs::create_dir(&bin).expect("a new folder");
        std::fs::copy(program, bin.join("iolab")).expect("room");
        self.use_program(&bin.join("iolab"), place.path());
        for folder in [&top, &bin] {
            std::fs::remove_dir_all(folder).expect("it is there");
        }
        let left = std::fs::read_dir(place.path()).expect("a folder").count();
        assert_eq!(left, 0);
        Some(())
    }

    /// Unpacks the tarball into a folder: the path of the program, where `cargo binstall` looks for it.
    #[track_caller]
    fn unpacked(&self, folder: &Path) -> Option<PathBuf> {
        let url = self.filled("pkg-url");
        let (_, name) = url.rsplit_once('/').expect("an address");
        let tarball = self.file(name)?;
        let mut tar = Command::new("tar");
        succeeds(tar.arg("-xzf").arg(tarball).current_dir(folder));
        let program = folder.join(self.filled("bin-dir"));
        assert!(program.exists(), "{} is missing", program.display());
        Some(program)
    }

    /// The tarball is served as the releases of a repository have it, and by HTTPS: `cargo binstall` takes nothing else.
    #[track_caller]
    fn binstall(&self) -> Option<()> {
        let binstall = needs::tool(Need::Binstall)?;
        let openssl = needs::tool(Need::Openssl)?;
        let place = folder();
        let inside = |name: &str| place.path().join(name);
        let path = self.filled("pkg-url").replace("{ repo }/", "");
        let served = inside("site").join(&path);
        let (_, name) = path.rsplit_once('/').expect("a path");
        std::fs::create_dir_all(served.parent().expect("a folder")).expect("a new folder");
        std::fs::copy(self.file(name)?, &served).expect("room");
        let server = Server::start(openssl, &inside("site"));
        let (bin, used) = (inside("bin"), inside("used"));
        std::fs::create_dir(&used).expect("a new folder");
        let mut binstall = Command::new(binstall);
        binstall.arg("iolab").arg("--manifest-path").arg(manifest());
        binstall
            .arg("--pkg-url")
            .arg(template("pkg-url").replace("{ repo }", &server.address));
        binstall.arg("--root-certificates").arg(&server.certificate);
        binstall.args([
            "--strategies", "crate-meta-data", "--no-confirm", "--disable-telemetry",
        ]);
        binstall.args([
            "--targets",
            &format!("{}-unknown-linux-gnu", self.architecture.name),
        ]);
        succeeds(binstall.arg("--no-track").arg("--install-path").arg(&bin));
        self.use_program(&bin.join("iolab"), &used);
        Some(())
    }

    /// A template for `cargo binstall`, filled in for this version and architecture but for the address of the repository.
    fn filled(&self, key: &str) -> String {
        let parts = [
            ("{ version }", env!("CARGO_PKG_VERSION")),
            ("{ target-arch }", self.architecture.name),
            ("{ bin }", "iolab"),
        ];
        let fill = |text: String, (name, value): (&str, &str)| text.replace(name, value);
        parts.into_iter().fold(template(key), fill)
    }

    #[track_caller]
    fn wheel(&self) -> Option<()> {
        let wheel = self.file(&format!("_{}.whl", self.architecture.name))?;
        let python = needs::tool(Need::Python)?;
        let place = folder();
        let venv = place.path().join("venv");
        succeeds(Command::new(python).args(["-m", "venv"]).arg(&venv));
        let pip = |words: &[&OsStr]| {
            let mut pip = Command::new(venv.join("bin/pip"));
            pip.arg("--quiet").args(words).output().expect("pip starts")
        };
        // Pip unpacks what is for another machine, and knows no more of it.
        let elsewhere = place.path().join("elsewhere");
        let platform = format!("manylinux2014_{}", self.architecture.name);
        let mut words: Vec<&OsStr> = ["install", "--no-index"].map(OsStr::new).to_vec();
        let mut python = Command::new(venv.join("bin/python"));
        python.current_dir(place.path());
        python.env_remove("IOLAB").env_remove("PYTHONPATH");
        if self.emulator.is_some() {
            words.extend(["--only-binary=:all:", "--platform"].map(OsStr::new));
            words.extend([
                platform.as_ref(),
                OsStr::new("--target"),
                elsewhere.as_ref(),
            ]);
        }
        words.push(wheel.as_ref());
        ended_well(&pip(&words), "pip install");
        let program = match &self.emulator {
            None => venv.join("bin/iolab"),
            Some(emulator) => {
                let program = place.path().join("emulated");
                let path = elsewhere.join("bin/iolab");
                let script = format!("#!/bin/sh\nexec '{emulator}' '{}' \"$@\"\n", path.display());
                std::fs::write(&program, script).expect("room");
                let executable = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&program, executable).expect("an own file");
                python.env("IOLAB", &program).env("PYTHONPATH", &elsewhere);
                program
            }
        };
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests");
        let tests = std::fs::canonicalize(tests).expect("the tests of the package");
        python.args(["-B", "-m", "unittest", "discover"]).arg(tests);
        let mut pass = || {
            let done = python.output().expect("Python starts");
            ended_well(&done, "the tests of the package");
            String::from_utf8_lossy(&done.stderr).into_owned()
        };
        // A study starts its own program, which qemu-user does not do.
        if self.emulator.is_none() {
            pass();
            let study = [
                "study", ".", "--suite", "glance", "--size", "16M", "--budget", "12s",
            ];
            succeeds(Command::new(&program).args(study).current_dir(place.path()));
        }
        // With data frames, as the example in INSTALL.md has them, no test of the package is left out.
        let pandas = pip(&["install".as_ref(), "pandas>=2".as_ref()]);
        let told = pass();
        match pandas.status.success() {
            true => assert!(told.trim_end().ends_with("OK"), "{told}"),
            false => needs::skip(Need::Pandas, String::from_utf8_lossy(&pandas.stderr)),
        }
        if self.emulator.is_none() {
            let removed = pip(&["uninstall", "--yes", "iolab"].map(OsStr::new));
            ended_well(&removed, "pip uninstall");
            assert!(!program.exists());
            let mut python = Command::new(venv.join("bin/python"));
            let import = python
                .args(["-c", "import iolab"])
                .current_dir(place.path());
            assert!(!import.output().expect("Python starts").status.success());
        }
        Some(())
    }

    #[track_caller]
    fn image(&self) -> Option<()> {
        let buildah = needs::tool(Need::Buildah)?;
        let runc = needs::tool(Need::Runc)?;
        if !needs::root() {
            return None;
        }
        let folder = folder();
        let place = folder.path();
        let program = self.unpacked(place)?;
        let context = place.join("context");
        std::fs::create_dir(&context).expect("a new folder");
        std::fs::rename(program, context.join("iolab")).expect("an own file");
        let buildah = |words: &[&str]| {
            let mut command = Command::new(buildah);
            command.current_dir(place).args(["--storage-driver", "vfs"]);
            command.arg("--root").arg(place.join("storage"));
            command.arg("--runroot").arg(place.join("run"));
            succeeds(command.args(words))
        };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/Containerfile");
        let file = file.to_str().expect("UTF-8");
        let architecture = self.architecture.of_debian;
        let build = ["bud", "--isolation", "chroot", "--arch", architecture];
        buildah(&[&build[..], &["-t", "iolab", "-f", file, "context"]].concat());
        let image = buildah(&["inspect", "--type", "image", "iolab"]);
        let image: Value = serde_json::from_str(&image).expect("JSON");
        for format in ["OCIv1", "Docker"] {
            assert_eq!(image[format]["architecture"], architecture, "{image:#}");
            assert_eq!(image[format]["os"], "linux", "{image:#}");
        }
        let container = buildah(&["from", "--arch", architecture, "iolab"]);
        let root = buildah(&["mount", container.trim()]);
        // As a container of the image has them: a root file system, and a mount to measure.
        let data = place.join("data");
        std::fs::create_dir(&data).expect("a new folder");
        succeeds(Command::new(runc).arg("spec").current_dir(place));
        let path = place.join("config.json");
        let config = std::fs::read_to_string(&path).expect("it was written");
        let mut config: Value = serde_json::from_str(&config).expect("JSON");
        let mut mounts = vec![json!({
            "destination": "/data", "type": "bind", "source": data, "options": ["rbind", "rw"],
        })];
        let mut words = Vec::new();
        if let Some(emulator) = &self.emulator {
            words.push("/emulator");
            mounts.push(json!({
                "destination": "/emulator", "type": "bind", "source": emulator, "options": ["bind", "ro"],
            }));
        }
        words.extend(["/iolab", "run", "read-random", "/data", "-o", "r.iolab"]);
        words.extend(SMALL);
        config["process"]["terminal"] = false.into();
        config["process"]["cwd"] = "/data".into();
        config["process"]["args"] = json!(words);
        config["root"]["path"] = root.trim().into();
        config["mounts"]
            .as_array_mut()
            .expect("a list")
            .extend(mounts);
        std::fs::write(&path, config.to_string()).expect("an own file");
        let name = format!("iolab-{architecture}-{}", std::process::id());
        let mut started = Command::new(runc);
        started.arg("--root").arg(place.join("runc"));
        succeeds(started.args(["run", &name]).current_dir(place));
        buildah(&["umount", container.trim()]);
        has_one_cell(place, "data/r.iolab");
        Some(())
    }
}

/// The manifest of the program.
fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")
}

/// A template for `cargo binstall` in the manifest.
fn template(key: &str) -> String {
    let manifest = std::fs::read_to_string(manifest()).expect("a manifest");
    let line = manifest.lines().find_map(|line| line.strip_prefix(key));
    let template = line.expect(key).trim_start_matches(" = ");
    template.trim_matches('"').to_owned()
}

/// A folder that is served by HTTPS, until this is dropped.
struct Server {
    process: Child,
    address: String,
    /// The file of its certificate, in the folder.
    certificate: PathBuf,
}

impl Server {
    /// For 127.0.0.1, signed by itself. It is no authority, which a server's must not be.
    const CERTIFICATE: &str = "[req]
distinguished_name = name
x509_extensions = extensions
[name]
[extensions]
subjectAltName = IP:127.0.0.1
basicConstraints = critical, CA:FALSE
";

    fn start(openssl: &str, folder: &Path) -> Self {
        std::fs::write(folder.join("request"), Self::CERTIFICATE).expect("room");
        let mut request = Command::new(openssl);
        request.args(["req", "-x509", "-config", "request", "-nodes", "-days", "2"]);
        request.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        request.args([
            "-subj", "/CN=127.0.0.1", "-keyout", "key", "-out", "certificate",
        ]);
        succeeds(request.current_dir(folder));
        let mut served = Command::new(openssl);
        served.args(["s_server", "-accept", "127.0.0.1:0", "-WWW"]);
        served.args(["-cert", "certificate", "-key", "key"]);
        served
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = served.current_dir(folder).spawn().expect("openssl starts");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let port = lines.find_map(|line| {
            let bound = line.strip_prefix("ACCEPT ")?;
            Some(bound.rsplit_once(':')?.1.to_owned())
        });
        // What it writes later is read, so that it never waits.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            address: format!("https://127.0.0.1:{}", port.expect("it is bound")),
            certificate: folder.join("certificate"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A run file of one cell, as the program of this build reads it.
#[track_caller]
fn has_one_cell(folder: &Path, file: &str) {
    let table = run(folder, &["table", "--format", "json", file]).expect(0);
    let table: Value = serde_json::from_str(&table.stdout).expect("JSON");
    assert_eq!(table["cells"].as_array().map(Vec::len), Some(1));
}

/// Runs a command, which must succeed; what it wrote to stdout.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    ended_well(&done, &format!("{command:?}"));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[track_caller]
fn ended_well(done: &Output, what: &str) {
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{what}: {told}");
}
