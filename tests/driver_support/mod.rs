//! What several tests share: the fake driver, compiled once, and the program told to use it.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The fake driver's library. With `cfg`, built with that configuration.
pub fn fake_driver(cfg: Option<&str>) -> &'static Path {
    static WHOLE: OnceLock<PathBuf> = OnceLock::new();
    static WITHOUT: OnceLock<PathBuf> = OnceLock::new();
    let place = if cfg.is_some() { &WITHOUT } else { &WHOLE };
    place.get_or_init(|| {
        let name = format!(
            "fake-{}-{}{}",
            cfg.unwrap_or("driver"),
            std::process::id(),
            std::env::consts::DLL_SUFFIX
        );
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/driver.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = std::process::Command::new(rustc);
        command.args([
            "--edition",
            "2021",
            "--crate-type",
            "cdylib",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
            "-A",
            "warnings",
            "-o",
        ]);
        command.arg(&library).arg(source);
        if let Some(cfg) = cfg {
            command.args(["--cfg", cfg]);
        }
        let built = command.status().expect("rustc runs");
        assert!(built.success(), "the fake driver does not compile");
        library
    })
}

/// The program with both libraries named and nothing of this machine's environment that would speak of devices.
pub fn with_driver(nvml: &Path, cuda: &Path) -> Command {
    let mut command = Command::cargo_bin("vramledger").expect("the binary is built");
    command
        .env("COLUMNS", "140")
        .env("VRAMLEDGER_NVML", nvml)
        .env("VRAMLEDGER_CUDA", cuda)
        .env("PATH", "/nowhere")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("NVIDIA_VISIBLE_DEVICES")
        .env_remove("CUDA_DEVICE_ORDER")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    command
}

/// Exit code, standard output and standard error.
#[allow(dead_code, reason = "each test program uses its share of this file")]
pub fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

/// A pseudo-terminal: the side that a program writes to, and a thread that gathers what it shows until that side is closed.
#[cfg(unix)]
#[allow(dead_code, reason = "each test program uses its share of this file")]
pub fn pseudo_terminal() -> (std::fs::File, std::thread::JoinHandle<String>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&terminal).expect("it is ours");
    unlockpt(&terminal).expect("it opens");
    let name = ptsname(&terminal, Vec::new()).expect("it has a name");
    let side = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let side = std::fs::OpenOptions::new().read(true).write(true).open(side).expect("its other side");
    let mut screen = std::fs::File::from(terminal);
    let shown = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut block = [0; 4096];
        // Reading fails once the other side is closed.
        while let Ok(length @ 1..) = screen.read(&mut block) {
            bytes.extend_from_slice(block.get(..length).unwrap_or_default());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    (side, shown)
}
