//! The Python package: its own tests, with the program under test.

use std::process::Command;

use needs::Need;

use crate::support::root;

#[test]
fn the_python_package_gives_the_same_numbers() {
    let Some(python) = needs::tool(Need::Python) else {
        return;
    };
    let tests = Command::new(python)
        .args(["-B", "-m", "unittest", "discover", "python/tests"])
        .current_dir(root())
        .env("IOLAB", env!("CARGO_BIN_EXE_iolab"))
        .env("PYTHONPATH", root().join("python"))
        .output()
        .expect("Python starts");
    let told = String::from_utf8_lossy(&tests.stderr);
    assert!(tests.status.success(), "{told}");
}
