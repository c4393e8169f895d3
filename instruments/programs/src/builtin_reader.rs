//! The built-in reader: one C source, built with the user's compiler for each linkage, and checked.
//!
//! Whether a program is linked dynamically: the program header of type `PT_INTERP` names its loader.
//!
//! Layout: System V Application Binary Interface, chapter 4 and 5 (ELF-64); elf(5).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;

use iolab_host::program::Program;
use iolab_record::environment::{Environment, KEYS};
use iolab_workload::command_template::{Linkage, Template};
use iolab_workload::{Error, Result};

const SOURCE: &str = include_str!("../probe/reader.c");

/// Compilers that are looked for if `CC` names none, in this order.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Remedy for static linking that fails.
const STATIC_REMEDY: &str = "install the static C library (Debian, Ubuntu: libc6-dev; Fedora: glibc-static; Alpine: \
                             musl-dev; Arch: musl, then CC=musl-gcc), or leave static out with --set linkage=dynamic";

/// One build of the reader.
#[derive(Debug)]
struct Build {
    linkage: Linkage,
    path: PathBuf,
    bytes: u64,
    loader: Option<String>,
}

/// The builds of the reader, in a private folder that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Probes {
    _folder: TempDir,
    compiler: String,
    builds: Vec<Build>,
}

impl Probes {
    /// Builds and checks the reader for each linkage.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no compiler, or it cannot link so: with its own last line and
    /// what to install.
    pub(crate) fn build(linkages: &[Linkage]) -> Result<Self> {
        let compiler = Compiler::find(std::env::var_os("CC").as_deref())?;
        let folder = tempfile::Builder::new()
            .prefix("iolab-probe-")
            .tempdir()
            .map_err(|error| unwritable(&error))?;
        let source = folder.path().join("reader.c");
        fs::write(&source, SOURCE).map_err(|error| unwritable(&error))?;
        let builds = linkages
            .iter()
            .map(|linkage| compiler.build(*linkage, &source, folder.path()))
            .collect::<Result<_>>()?;
        Ok(Self {
            _folder: folder,
            compiler: compiler.version,
            builds,
        })
    }

    /// The reader of each linkage with the file that it executes.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Template, PathBuf)> {
        let builds = self.builds.iter();
        builds.map(|build| (build.linkage.template(), build.path.clone()))
    }

    /// Facts about the builds for the run file: the compiler, their sizes, the loader of the dynamic one.
    pub(crate) fn environment(&self) -> Environment {
        let mut list = Environment::default();
        list.put(&KEYS.probe_compiler, self.compiler.clone());
        for build in &self.builds {
            list.put(&KEYS.probe_bytes.of(build.linkage), build.bytes);
            list.put(&KEYS.probe_loader, build.loader.clone());
        }
        list
    }
}

fn unwritable(error: &std::io::Error) -> Error {
    let place = std::env::temp_dir();
    Error::usage(format!(
        "the reader cannot be built in {}: {error}",
        place.display()
    ))
    .hint("name a folder that can be written with TMPDIR")
}

/// A C compiler that answered.
struct Compiler {
    /// The program and what goes before the arguments: `ccache gcc`, `gcc -m64`.
    words: Vec<std::ffi::OsString>,
    /// Name of the compiler, and the first line of its version.
    version: String,
}

impl Compiler {
    /// The compiler that `CC` names, otherwise the first of [`COMPILERS`].
    fn find(named: Option<&std::ffi::OsStr>) -> Result<Self> {
        // Compilers read and write /dev/null; without it none of them would answer.
        fs::File::open("/dev/null").map_err(|error| {
            Error::usage(format!("cannot open /dev/null: {error}"))
                .hint("programs are not run where /dev is hidden: mount it")
        })?;
        let named = named.map(|cc| cc.to_string_lossy().into_owned());
        if let Some(cc) = named.filter(|cc| !cc.trim().is_empty()) {
            return Self::ask(&cc).map_err(|reason| {
                Error::usage(format!(
                    "the C compiler that CC names, '{cc}', does not answer: {reason}"
                ))
                .hint("correct CC, or unset it to let iolab look for one")
            });
        }
        COMPILERS
            .iter()
            .find_map(|name| Self::ask(name).ok())
            .ok_or_else(|| {
                Error::usage(format!(
                    "there is no C compiler to build the reader with: none of {} answers",
                    COMPILERS.join(", ")
                ))
                .hint("install one (Debian, Ubuntu: gcc libc6-dev; Fedora: gcc; Alpine: gcc musl-dev), name it with CC, or time programs of your own with --set command=...")
            })
    }

    /// Asks a compiler for its version; the reason when it has none to give.
    fn ask(command: &str) -> std::result::Result<Self, String> {
        let template: Template = command.parse().map_err(|e: Error| e.message().to_owned())?;
        let program = Program::find(template.program()).map_err(|e| e.message().to_owned())?;
        let mut words = vec![program.into_os_string()];
        words.extend(template.arguments(Path::new(""), 0, 0));
        let mut compiler = Self {
            words,
            version: String::new(),
        };
        let output = compiler
            .command()
            .arg("--version")
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("--version ended with {}", output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        compiler.version = format!("{command}: {line}");
        Ok(compiler)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .stdin(Stdio::null())
            .env("LC_ALL", "C");
        command
    }

    fn build(&self, linkage: Linkage, source: &Path, folder: &Path) -> Result<Build> {
        let path = folder.join(format!("reader-{linkage}"));
        let mut command = self.command();
        command.arg("-O2").arg("-o").arg(&path).arg(source);
        if linkage == Linkage::Static {
            command.arg("-static");
        }
        let output = command
            .output()
            .map_err(|error| self.failed(linkage, &error.to_string()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let said = reason(&text).unwrap_or("it gives no reason");
            let error = self.failed(linkage, said);
            return Err(match is_crash(output.status, &text) {
                true => error.hint("the compiler crashed: look at the limits that it runs under (ulimit -a), or name another with CC"),
                false => error,
            });
        }
        self.check(linkage, path)
    }

    fn check(&self, linkage: Linkage, path: PathBuf) -> Result<Build> {
        let bytes = fs::read(&path).map_err(|error| self.failed(linkage, &error.to_string()))?;
        let loader = interpreter(&bytes).map_err(|reason| self.failed(linkage, reason))?;
        match (linkage, &loader) {
            (Linkage::Static, None) | (Linkage::Dynamic, Some(_)) => Ok(Build {
                linkage,
                path,
                bytes: bytes.len() as u64,
                loader,
            }),
            (Linkage::Static, Some(loader)) => Err(self.failed(
                linkage,
                &format!("it was asked for a static program and made one that {loader} loads"),
            )),
            (Linkage::Dynamic, None) => Err(self.failed(
                linkage,
                "it was asked for a dynamic program and made one without a loader",
            )),
        }
    }

    fn failed(&self, linkage: Linkage, reason: &str) -> Error {
        let error = Error::usage(format!(
            "the {linkage} reader cannot be built with {}: {}",
            self.version,
            reason.trim()
        ));
        match linkage {
            Linkage::Static => error.hint(STATIC_REMEDY),
            Linkage::Dynamic => error.hint(
                "name another C compiler with CC, or leave dynamic out with --set linkage=static",
            ),
        }
    }
}

/// The line in which a compiler names the fault: the first that looks like it, otherwise the last.
fn reason(said: &str) -> Option<&str> {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let telling = |line: &&str| ["error", "cannot find"].iter().any(|w| line.contains(w));
    lines.clone().find(telling).or_else(|| lines.next_back())
}

/// Whether a compiler, or a part of it, was ended by a signal.
fn is_crash(status: ExitStatus, said: &str) -> bool {
    status.code().is_none() || said.contains("internal compiler error")
}

/// Program header of the loader's path.
const PT_INTERP: u64 = 3;

/// Longest path of a loader that is believed.
const PATH_MAX: u64 = 4096;

/// The loader that a 64-bit ELF program names, with the lowest byte first; `None` if it names none, as a statically linked program.
///
/// # Errors
/// The fault of the file, in a few words.
fn interpreter(bytes: &[u8]) -> std::result::Result<Option<String>, &'static str> {
    if bytes.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return Err("it is not a 64-bit ELF file");
    }
    let field = |at: u64, size: usize| {
        number(bytes, at, size).ok_or("its program headers lie outside of it")
    };
    // ET_EXEC, ET_DYN
    if !matches!(field(16, 2)?, 2 | 3) {
        return Err("it is not an ELF program");
    }
    let (first, size, count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
    for index in 0..count {
        let header = first.saturating_add(index * size);
        if field(header, 4)? == PT_INTERP {
            let (start, length) = (header.saturating_add(8), header.saturating_add(32));
            let (start, length) = (field(start, 8)?, field(length, 8)?);
            let path = text(bytes, start, length.min(PATH_MAX));
            return path.map(Some).ok_or("its loader has no readable name");
        }
    }
    Ok(None)
}

/// This many bytes from `at` on.
fn part(bytes: &[u8], at: u64, size: usize) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at.checked_add(size)?)
}

/// The number in the bytes from `at` on, the lowest byte first.
fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let field = part(bytes, at, size)?.iter().rev();
    Some(field.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The text from `at` on, up to its NUL.
fn text(bytes: &[u8], at: u64, length: u64) -> Option<String> {
    let path = part(bytes, at, length as usize)?;
    let path = path.split(|byte| *byte == 0).next()?;
    let path = std::str::from_utf8(path).ok()?;
    (!path.is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_compiler_is_named() {
        let error = Compiler::find(Some(OsStr::new("/nonexistent/cc -m64"))).err();
        let error = error.expect("missing");
        assert_eq!(error.kind(), iolab_workload::Kind::Usage);
        insta::assert_snapshot!(error.message(), @"the C compiler that CC names, '/nonexistent/cc -m64', does not answer: cannot run /nonexistent/cc: No such file or directory (os error 2)");
    }

    /// A stand-in for a compiler: a script, which the shell reads. A file executed soon after it was written can be busy
    /// (ETXTBSY) if another thread's child still holds the writer's descriptor.
    fn script(folder: &Path, body: &str) -> Compiler {
        let path = folder.join("compiler");
        fs::write(
            &path,
            format!("[ \"$1\" = --version ] && echo test 1.0 && exit 0\n{body}\n"),
        )
        .expect("written");
        let words = format!("/bin/sh {}", path.display());
        Compiler::find(Some(OsStr::new(&words))).expect("it answers")
    }

    fn build(body: &str, linkage: Linkage) -> Error {
        let folder = tempfile::tempdir().expect("a folder");
        let compiler = script(folder.path(), body);
        let source = folder.path().join("reader.c");
        let built = compiler.build(linkage, &source, folder.path());
        built.expect_err("not trusted")
    }

    #[test]
    fn a_static_link_failure_names_what_is_missing() {
        let error = build(
            "echo first >&2; echo 'ld: cannot find -lc' >&2; exit 1",
            Linkage::Static,
        );
        let text = error.to_string();
        let (_, of_compiler) = text.split_once("test 1.0: ").expect("its version");
        insta::assert_snapshot!(of_compiler, @r"
        ld: cannot find -lc
          install the static C library (Debian, Ubuntu: libc6-dev; Fedora: glibc-static; Alpine: musl-dev; Arch: musl, then CC=musl-gcc), or leave static out with --set linkage=dynamic
        ");
    }

    #[test]
    fn the_compilers_output_is_not_trusted() {
        let error = build("echo nothing of use > \"$3\"", Linkage::Dynamic);
        let (_, told) = error
            .message()
            .split_once("test 1.0: ")
            .expect("its version");
        insta::assert_snapshot!(told, @"it is not a 64-bit ELF file");
        let own = fs::read("/proc/self/exe").expect("readable");
        let wrong = match interpreter(&own).expect("a program") {
            Some(_) => Linkage::Static,
            None => Linkage::Dynamic,
        };
        let own = fs::canonicalize("/proc/self/exe").expect("a path");
        let error = build(&format!("cp '{}' \"$3\"", own.display()), wrong);
        assert!(error.message().contains(&wrong.to_string()), "{error}");
    }

    #[test]
    fn the_reader_reads_everything_and_explains_failures() {
        let probes = match Probes::build(&[Linkage::Dynamic]) {
            Ok(probes) => probes,
            Err(error) => return needs::skip(needs::Need::Cc, error),
        };
        let (_, reader) = probes.files().next().expect("built");
        let run = |arguments: &[&str]| {
            let output = Command::new(&reader)
                .args(arguments)
                .output()
                .expect("runs");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), text)
        };
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let this = this.to_str().expect("UTF-8");
        assert_eq!(run(&[this]), (Some(0), String::new()));
        assert_eq!(run(&[this, "7"]), (Some(0), String::new()));
        let (code, text) = run(&["/nonexistent"]);
        assert_eq!(code, Some(1));
        insta::assert_snapshot!(text, @"cannot open /nonexistent: No such file or directory");
        for wrong in ["0", "x", "", "1x", "99999999999999999999999"] {
            assert_eq!(run(&[this, wrong]).0, Some(2), "{wrong}");
        }
        assert_eq!(run(&[]).0, Some(2));
        let environment = probes.environment();
        let keys: Vec<&str> = environment.iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            ["probe_compiler", "probe_dynamic_bytes", "probe_loader"]
        );
        let folder = reader.parent().expect("a folder").to_owned();
        drop(probes);
        assert!(!folder.exists());
    }

    /// A program with one header of this type, which points to `path`.
    fn program(kind: u32, path: &str) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        put(0, &[0x7f, b'E', b'L', b'F', 2, 1]);
        put(16, &3u16.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(64, &kind.to_le_bytes());
        put(72, &120u64.to_le_bytes());
        put(96, &(path.len() as u64 + 1).to_le_bytes());
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn the_loader_of_a_program_is_found() {
        let of = |kind| interpreter(&program(kind, "/lib/ld.so.1"));
        assert_eq!(of(3), Ok(Some("/lib/ld.so.1".to_owned())));
        assert_eq!(of(1), Ok(None));
        let mut object = program(3, "/lib/ld.so.1");
        object[16] = 1;
        assert_eq!(interpreter(&object), Err("it is not an ELF program"));
        assert!(interpreter(&program(3, "")).is_err());
        let whole = program(3, "/lib/ld.so.1");
        for cut in 0..whole.len() {
            assert!(!matches!(interpreter(&whole[..cut]), Ok(Some(_))), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(
            noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..130, value: u8,
        ) {
            let _ = interpreter(&noise);
            let mut bytes = program(3, "/lib/ld.so.1");
            let tail = bytes.len().min(6 + noise.len());
            bytes[6..tail].copy_from_slice(&noise[..tail - 6]);
            bytes[16..18].copy_from_slice(&[3, 0]);
            let _ = interpreter(&bytes);
            let mut bytes = program(3, "/lib/ld.so.1");
            bytes[at] = value;
            let _ = interpreter(&bytes);
        }
    }
}
