//! The binary: everything is in the library; this maps its result to an exit code.

fn main() -> std::process::ExitCode {
    vramledger::cli::run()
}
