//! Following a source while it is written: new bytes as they come, across rotation and truncation.
//!
//! Separate from the scan, which wants a source that ends. A thread reads, since a pipe blocks; a file is looked at again
//! and again, since no portable way to be told of changes works on network file systems.

use super::source::Source;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How often a file is looked at.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes taken at once.
const BLOCK: usize = 64 << 10;

/// What became of a followed source.
#[derive(Debug)]
pub enum Grown {
    /// More of it.
    Bytes(Vec<u8>),
    /// The file does not exist yet.
    Awaited,
    /// Another file stands under the name: what was left of the old one has been read.
    Rotated,
    /// The file became shorter: it is read from its start again.
    Truncated,
    /// A pipe has ended.
    Ended,
    /// Reading failed.
    Failed(io::Error),
}

/// Follows a source on a thread of its own, which ends when the receiver goes.
pub fn tail(source: &Source) -> Receiver<Grown> {
    let (sender, receiver) = channel();
    let source = source.clone();
    // Detached on purpose: a read that blocks cannot be interrupted.
    std::thread::spawn(move || {
        let outcome = match &source {
            Source::Path(path) if is_file_or_nothing(path) => file(path, &sender),
            Source::Path(path) => File::open(path).and_then(|pipe| stream(pipe, &sender)),
            Source::Stdin => stream(io::stdin().lock(), &sender),
            Source::Memory { bytes, .. } => stream(&**bytes, &sender),
        };
        if let Err(error) = outcome {
            let _ = sender.send(Grown::Failed(error));
        }
    });
    receiver
}

fn is_file_or_nothing(path: &Path) -> bool {
    path.metadata().ok().is_none_or(|facts| facts.is_file())
}

/// Reads a pipe to its end. `Ok` also where nobody listens any more.
fn stream(mut pipe: impl Read, sender: &Sender<Grown>) -> io::Result<()> {
    while let Some(bytes) = block(&mut pipe)? {
        if sender.send(Grown::Bytes(bytes)).is_err() {
            return Ok(());
        }
    }
    let _ = sender.send(Grown::Ended);
    Ok(())
}

/// The bytes at hand; `None` at the end.
fn block(pipe: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; BLOCK];
    loop {
        match pipe.read(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(length) => {
                bytes.truncate(length);
                return Ok(Some(bytes));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a file for ever, and whatever takes its place.
fn file(path: &Path, sender: &Sender<Grown>) -> io::Result<()> {
    let mut opened = match open(path, sender)? {
        Some(opened) => opened,
        None => return Ok(()),
    };
    loop {
        let mut read = 0_u64;
        let told = loop {
            while let Some(bytes) = block(&mut opened.0)? {
                read += bytes.len() as u64;
                if sender.send(Grown::Bytes(bytes)).is_err() {
                    return Ok(());
                }
            }
            std::thread::sleep(PAUSE);
            match path.metadata() {
                // The name is gone for a moment: the new file comes.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(now) if !same_file(&now, &opened.1) => {
                    // What was written between the last look and the change of files.
                    while let Some(bytes) = block(&mut opened.0)? {
                        if sender.send(Grown::Bytes(bytes)).is_err() {
                            return Ok(());
                        }
                    }
                    break Grown::Rotated;
                }
                Ok(now) if now.len() < read => break Grown::Truncated,
                Ok(_) => {}
            }
        };
        if let Grown::Truncated = told {
            opened.0.seek(SeekFrom::Start(0))?;
        } else {
            match open(path, sender)? {
                Some(next) => opened = next,
                None => return Ok(()),
            }
        }
        if sender.send(told).is_err() {
            return Ok(());
        }
    }
}

/// Opens the file, waiting for it to appear. `None` where nobody listens any more.
fn open(path: &Path, sender: &Sender<Grown>) -> io::Result<Option<(File, Metadata)>> {
    loop {
        match File::open(path) {
            Ok(file) => {
                let facts = file.metadata()?;
                return Ok(Some((file, facts)));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if sender.send(Grown::Awaited).is_err() {
                    return Ok(None);
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Without inode numbers the moment of creation has to do.
#[cfg(not(unix))]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    one.created().ok() == other.created().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::time::Instant;

    /// Everything that comes until `end`, with rotations and truncations in angle brackets.
    fn read_until(receiver: &Receiver<Grown>, end: &str) -> String {
        let mut text = String::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !text.ends_with(end) {
            assert!(Instant::now() < deadline, "only {text:?} came");
            match receiver.recv_timeout(Duration::from_secs(20)).unwrap() {
                Grown::Bytes(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Grown::Rotated => text.push_str("<rotated>"),
                Grown::Truncated => text.push_str("<truncated>"),
                Grown::Ended => text.push_str("<ended>"),
                Grown::Awaited => {}
                Grown::Failed(error) => panic!("{error}"),
            }
        }
        text
    }

    #[test]
    fn a_file_is_followed_through_rotation_and_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let receiver = tail(&Source::Path(path.clone()));
        fs::write(&path, "one\n").unwrap();
        assert_eq!(read_until(&receiver, "one\n"), "one\n", "the file may come later");
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(read_until(&receiver, "two\n"), "two\n");
        fs::rename(&path, folder.path().join("server.log.1")).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join("server.log.1"))
            .unwrap()
            .write_all(b"late\n")
            .unwrap();
        fs::write(&path, "three, longer\n").unwrap();
        assert_eq!(read_until(&receiver, "longer\n"), "late\n<rotated>three, longer\n");
        fs::write(&path, "4\n").unwrap();
        assert_eq!(read_until(&receiver, "4\n"), "<truncated>4\n");
    }

    #[test]
    fn a_pipe_ends() {
        let receiver = tail(&Source::memory("-", *b"all"));
        assert_eq!(read_until(&receiver, "<ended>"), "all<ended>");
    }
}
