//! Passes the program its build identification.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let profile = env::var("PROFILE").expect("cargo sets it");
    println!("cargo::rustc-env=IOLAB_BUILD={profile}");
}
