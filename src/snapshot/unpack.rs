//! Unpacking of gzip, with a limit: a few bytes can claim to be gigabytes.

use super::{LARGEST, SnapshotError};
use flate2::read::MultiGzDecoder;
use std::io::Read;

/// The first bytes of gzip data.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How many times its packed size a snapshot may be. The recorded ones are 7 to 15 times; gzip itself reaches 1,032.
const LARGEST_RATIO: usize = 256;
/// Small files may be packed tighter.
const ALWAYS_ALLOWED: usize = 1 << 24;

/// The bytes themselves, or what they hold where they are gzip data.
pub(super) fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>, SnapshotError> {
    if bytes.len() > LARGEST {
        return Err(SnapshotError::TooLarge);
    }
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let by_ratio = bytes.len().saturating_mul(LARGEST_RATIO).max(ALWAYS_ALLOWED);
    let limit = by_ratio.min(LARGEST);
    let mut unpacked = Vec::new();
    let decoder = MultiGzDecoder::new(bytes.as_slice());
    decoder
        .take(limit as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| SnapshotError::Gzip(error.to_string()))?;
    match unpacked.len() > limit {
        true if limit == LARGEST => Err(SnapshotError::TooLarge),
        true => Err(SnapshotError::PackedTooTightly { ratio: LARGEST_RATIO }),
        false => Ok(unpacked),
    }
}

/// The first bytes of what a file's first bytes hold: unpacked where they are gzip data, as far as they go.
pub(super) fn first_bytes(head: &[u8]) -> [u8; 2] {
    let mut first = [0; 2];
    let mut plain = head;
    let mut packed = MultiGzDecoder::new(head);
    // A cut or broken head leaves zeros, which no form begins with.
    let _ =
        if head.starts_with(&GZIP) { packed.read_exact(&mut first) } else { plain.read_exact(&mut first) };
    first
}
