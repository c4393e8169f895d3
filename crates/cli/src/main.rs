//! The program `iolab`.

fn main() -> std::process::ExitCode {
    iolab::main()
}
