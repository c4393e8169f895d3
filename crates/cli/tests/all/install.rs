//! What is installed: completions, man pages, the tarball, the Debian package, the Python wheel, the image of a container.

use std::path::{Path, PathBuf};
use std::process::Command;

use needs::Need;

use crate::support::{folder, refusals, run};

const COMMANDS: [&str; 6] = ["study", "run", "doctor", "compare", "report", "completions"];

#[test]
fn completions_know_every_command() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(folder.path(), &["completions", shell]).expect(0).stdout;
        for word in COMMANDS.iter().chain(&["destroy-data"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let told = refusals(folder.path(), &[&["completions", "tcsh"]]);
    insta::assert_snapshot!(told);
}

/// Cargo builds examples for tests, too: beside the folder that this test lies in.
fn man() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/man")
}

#[test]
fn every_command_has_a_man_page() {
    let folder = folder();
    let made = Command::new(man()).arg(folder.path()).status().unwrap();
    assert!(made.success());
    for command in COMMANDS {
        let page = folder.path().join(format!("iolab-{command}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH OPTIONS"), "{}", page.display());
    }
    assert!(folder.path().join("iolab.1").exists());
}

#[test]
fn the_debian_package_is_installed_used_and_removed() {
    let Some(package) = std::env::var_os("IOLAB_DEB") else {
        return needs::skip(Need::DebPackage, "the variable is not set");
    };
    let package = std::fs::canonicalize(package).unwrap();
    if let Some(lintian) = needs::tool(Need::Lintian) {
        succeeds(
            Command::new(lintian)
                .args(["--fail-on", "error"])
                .arg(&package),
        );
    }
    let folder = folder();
    let admin = folder.path().join("var/lib/dpkg");
    for part in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(admin.join(part)).unwrap();
    }
    for file in ["status", "available"] {
        std::fs::write(admin.join(file), "").unwrap();
    }
    let dpkg = |arguments: &[&std::ffi::OsStr]| {
        let done = Command::new("dpkg")
            .arg("--force-not-root")
            .arg("--force-depends")
            .arg("--force-script-chrootless")
            .arg(format!("--root={}", folder.path().display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    if needs::tool(Need::Dpkg).is_none() {
        return;
    }
    dpkg(&["--install".as_ref(), package.as_os_str()]);
    let binary = folder.path().join("usr/bin/iolab");
    let version = Command::new(&binary).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert_eq!(
        version.trim(),
        format!("iolab {}", env!("CARGO_PKG_VERSION"))
    );
    let listed = Command::new(&binary).arg("list").output().unwrap();
    assert!(listed.status.success());
    for file in [
        "usr/share/man/man1/iolab-run.1",
        "usr/share/bash-completion/completions/iolab",
        "usr/share/zsh/vendor-completions/_iolab",
        "usr/share/fish/vendor_completions.d/iolab.fish",
        "usr/share/doc/iolab/SAFETY.md",
    ] {
        let mut forms = [file.to_owned(), format!("{file}.gz")].into_iter();
        let there = forms.any(|form| folder.path().join(form).exists());
        assert!(there, "{file} is missing");
    }
    dpkg(&["--remove".as_ref(), "iolab".as_ref()]);
    assert!(!folder.path().join("usr").exists());
}

/// Where `cargo binstall` looks for the program: the templates in the manifest, filled in for a repository.
struct Binstall {
    url: String,
    program: String,
}

impl Binstall {
    fn of_manifest() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let filled = |key: &str| {
            let line = manifest.lines().find_map(|line| line.strip_prefix(key));
            let template = line.expect(key).trim_start_matches(" = ").trim_matches('"');
            let parts = [
                ("{ repo }", "https://example.org/iolab"),
                ("{ version }", env!("CARGO_PKG_VERSION")),
                ("{ target-arch }", std::env::consts::ARCH),
                ("{ bin }", "iolab"),
            ];
            let fill = |text: String, (name, value)| text.replace(name, value);
            parts.into_iter().fold(template.to_owned(), fill)
        };
        Self {
            url: filled("pkg-url"),
            program: filled("bin-dir"),
        }
    }
}

#[test]
fn the_tarball_is_unpacked_used_and_removed() {
    let Some(tarball) = std::env::var_os("IOLAB_TARBALL").map(PathBuf::from) else {
        return needs::skip(Need::Tarball, "the variable is not set");
    };
    let Binstall { url, program } = Binstall::of_manifest();
    let name = tarball.file_name().unwrap().to_str().unwrap();
    assert!(url.ends_with(&format!("/{name}")), "{url}");
    let folder = folder();
    let place = folder.path();
    succeeds(
        Command::new("tar")
            .arg("-xzf")
            .arg(&tarball)
            .current_dir(place),
    );
    let top = place.join(&program).parent().unwrap().to_owned();
    for file in [
        "man/iolab-run.1",
        "completions/iolab.bash",
        "completions/_iolab",
        "completions/iolab.fish",
        "docs/SAFETY.md",
        "iolab.cdx.json",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        assert!(top.join(file).exists(), "{file} is missing");
    }
    // As INSTALL.md has it.
    let bin = place.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(place.join(&program), bin.join("iolab")).unwrap();
    let iolab = |words: &[&str]| {
        succeeds(
            Command::new(bin.join("iolab"))
                .args(words)
                .current_dir(place),
        )
    };
    let version = iolab(&["--version"]);
    assert_eq!(
        version.trim(),
        format!("iolab {}", env!("CARGO_PKG_VERSION"))
    );
    let measured = ["run", "read-random", ".", "--bs", "4k", "--size", "16M"];
    iolab(&[&measured[..], &["--budget", "3s", "-o", "r.iolab"]].concat());
    let table: serde_json::Value =
        serde_json::from_str(&iolab(&["table", "--format", "json", "r.iolab"])).unwrap();
    assert_eq!(table["cells"].as_array().unwrap().len(), 1);
    for folder in [&top, &bin] {
        std::fs::remove_dir_all(folder).unwrap();
    }
    let left = std::fs::read_dir(place).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["r.iolab"]);
}

#[test]
fn the_wheel_is_installed_used_and_removed() {
    let Some(wheel) = std::env::var_os("IOLAB_WHEEL") else {
        return needs::skip(Need::Wheel, "the variable is not set");
    };
    let Some(python) = needs::tool(Need::Python) else {
        return;
    };
    let folder = folder();
    let venv = folder.path().join("venv");
    succeeds(Command::new(python).args(["-m", "venv"]).arg(&venv));
    let pip = venv.join("bin/pip");
    succeeds(
        Command::new(&pip)
            .args(["install", "--quiet", "--no-index"])
            .arg(&wheel),
    );
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests");
    let tests = std::fs::canonicalize(tests).unwrap();
    let pass = || {
        let mut python = Command::new(venv.join("bin/python"));
        python
            .args(["-B", "-m", "unittest", "discover"])
            .arg(&tests);
        python.env_remove("IOLAB").env_remove("PYTHONPATH");
        let done = python.current_dir(folder.path()).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{told}");
        told
    };
    pass();
    let study = [
        "study", ".", "--suite", "glance", "--size", "16M", "--budget", "12s",
    ];
    succeeds(
        Command::new(venv.join("bin/iolab"))
            .args(study)
            .current_dir(folder.path()),
    );
    // With data frames, as the example in INSTALL.md has them, no test of the package is left out.
    let pandas = Command::new(&pip)
        .args(["install", "--quiet", "pandas>=2"])
        .output();
    let pandas = pandas.expect("pip starts");
    if pandas.status.success() {
        let told = pass();
        assert!(told.trim_end().ends_with("OK"), "{told}");
    } else {
        needs::skip(Need::Pandas, String::from_utf8_lossy(&pandas.stderr));
    }
    succeeds(Command::new(&pip).args(["uninstall", "--quiet", "--yes", "iolab"]));
    assert!(!venv.join("bin/iolab").exists());
    let import = Command::new(venv.join("bin/python"))
        .args(["-c", "import iolab"])
        .current_dir(folder.path())
        .output();
    assert!(!import.unwrap().status.success());
}

#[test]
fn the_image_of_a_container_is_built_and_run() {
    let Some(program) = std::env::var_os("IOLAB_STATIC") else {
        return needs::skip(Need::StaticBinary, "the variable is not set");
    };
    let (Some(buildah), Some(runc)) = (needs::tool(Need::Buildah), needs::tool(Need::Runc)) else {
        return;
    };
    if !needs::root() {
        return;
    }
    let folder = folder();
    let place = folder.path();
    std::fs::create_dir(place.join("context")).unwrap();
    std::fs::copy(program, place.join("context/iolab")).unwrap();
    let buildah = |words: &[&str]| {
        let mut command = Command::new(buildah);
        command.current_dir(place).args(["--storage-driver", "vfs"]);
        command.arg("--root").arg(place.join("storage"));
        command.arg("--runroot").arg(place.join("run"));
        succeeds(command.args(words))
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/Containerfile");
    let file = file.to_str().unwrap();
    buildah(&[
        "bud",
        "--isolation",
        "chroot",
        "-t",
        "iolab",
        "-f",
        file,
        "context",
    ]);
    let container = buildah(&["from", "iolab"]);
    let root = buildah(&["mount", container.trim()]);
    // As a container of the image has them: a root file system, and a mount to measure.
    let data = place.join("data");
    std::fs::create_dir(&data).unwrap();
    succeeds(Command::new(runc).arg("spec").current_dir(place));
    let path = place.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["process"]["terminal"] = false.into();
    config["process"]["cwd"] = "/data".into();
    config["process"]["args"] = serde_json::json!([
        "/iolab",
        "run",
        "read-random",
        "/data",
        "--bs",
        "4k",
        "--size",
        "16M",
        "--budget",
        "3s",
        "-o",
        "r.iolab"
    ]);
    config["root"]["path"] = root.trim().into();
    config["mounts"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({
            "destination": "/data", "type": "bind", "source": data, "options": ["rbind", "rw"],
        }));
    std::fs::write(&path, config.to_string()).unwrap();
    let name = format!("iolab-test-{}", std::process::id());
    let mut started = Command::new(runc);
    started.arg("--root").arg(place.join("runc"));
    succeeds(started.args(["run", &name]).current_dir(place));
    buildah(&["umount", container.trim()]);
    let table = run(place, &["table", "--format", "json", "data/r.iolab"]);
    let table: serde_json::Value = serde_json::from_str(&table.expect(0).stdout).unwrap();
    assert_eq!(table["cells"].as_array().unwrap().len(), 1);
}

/// Runs a command, which must succeed; what it wrote to stdout.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {told}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
