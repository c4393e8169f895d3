//! The Python package: its own tests, with the program under test.

use std::path::Path;
use std::process::Command;

use needs::Need;

#[test]
fn the_python_package_gives_the_same_numbers() {
    let Some(python) = needs::tool(Need::Python) else {
        return;
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tests = Command::new(python)
        .args(["-B", "-m", "unittest", "discover", "python/tests"])
        .current_dir(&project)
        .env("IOLAB", env!("CARGO_BIN_EXE_iolab"))
        .env("PYTHONPATH", project.join("python"))
        .output()
        .expect("Python starts");
    let told = String::from_utf8_lossy(&tests.stderr);
    assert!(tests.status.success(), "{told}");
}
