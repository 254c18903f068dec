//! Chooses a few short pieces that stand for many literals, for the sake of the vectorised search.
//!
//! Separate from the needles because it knows something they do not: what the bulk of a serving log looks like.

use std::collections::HashSet;

/// The length of a piece. Three bytes are as specific as the vectorised search's fingerprint needs.
const PIECE: usize = 3;

/// What most lines of a log are. A piece that occurs here would stop the search at every other line.
const TRAFFIC: &str = "\
[2026-11-29 13:52:07 TP0] Decode batch, #running-req: 13, #token: 10240, token usage: 0.06, cuda graph: True, gen throughput (token/s): 3894.71, #queue-req: 0, \n\
[2026-11-29 13:52:08 DP1 TP2] Decode batch. #running-req: 49, #full token: 1587, full token usage: 0.25, swa token usage: 0.33, accept len: 2.17, accept rate: 0.54, cuda graph: False,\n\
[2026-11-29 13:52:07] Prefill batch, #new-seq: 1, #new-token: 1024, #cached-token: 896, token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, input throughput (token/s): 38.71\n\
[2026-11-29 13:52:06] INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 200 OK\n\
INFO:     10.42.7.19:43968 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n\
INFO:     10.0.3.1:8145 - \"GET /health HTTP/1.1\" 503 Service Unavailable\n\
INFO:     10.0.3.1:8145 - \"GET /health_generate HTTP/1.1\" 200 OK\n\
INFO:     10.0.3.1:8145 - \"GET /get_model_info HTTP/1.1\" 200 OK\n\
INFO:     10.0.3.1:8145 - \"GET /server_info HTTP/1.1\" 200 OK\n\
INFO:     10.0.3.1:8145 - \"GET /metrics HTTP/1.1\" 307 Temporary Redirect\n";

/// Pieces such that every literal contains one: greedily those that stand for the most literals for the least cost.
///
/// A literal shorter than a piece, or all of whose pieces occur in traffic, is its own piece.
pub(super) fn cover(literals: &[&str]) -> Vec<String> {
    let traffic: HashSet<&[u8]> = TRAFFIC.as_bytes().windows(PIECE).collect();
    let (own, alone): (Vec<_>, Vec<_>) = literals
        .iter()
        .map(|literal| (*literal, pieces_of(literal, &traffic)))
        .partition(|(_, pieces)| !pieces.is_empty());
    let mut chosen: Vec<String> = alone.into_iter().map(|(literal, _)| literal.to_owned()).collect();
    let mut names: Vec<&str> = own.iter().flat_map(|(_, pieces)| pieces).copied().collect();
    names.sort_unstable();
    names.dedup();
    let bytes = byte_costs();
    let mut offers: Vec<Offer<'_>> =
        names.iter().map(|piece| Offer { piece, cost: cost(piece, &bytes), count: 0 }).collect();
    let numbered =
        |pieces: &Vec<&str>| pieces.iter().filter_map(|piece| names.binary_search(piece).ok()).collect();
    let mut left: Vec<Vec<usize>> = own.iter().map(|(_, pieces)| numbered(pieces)).collect();
    count(&mut offers, &left, |count| *count += 1);
    while !left.is_empty() {
        let best =
            offers.iter().enumerate().max_by(|(_, one), (_, other)| one.worth().total_cmp(&other.worth()));
        let Some((best, offer)) = best else { break };
        chosen.push(offer.piece.to_owned());
        let (served, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|pieces| pieces.contains(&best));
        count(&mut offers, &served, |count| *count -= 1);
        left = rest;
    }
    chosen
}

/// A piece that may be chosen.
struct Offer<'a> {
    piece: &'a str,
    cost: f64,
    /// How many of the literals that are left contain it.
    count: usize,
}

impl Offer<'_> {
    fn worth(&self) -> f64 {
        self.count as f64 / (0.2 + self.cost)
    }
}

/// Changes the counts of all the pieces that `literals` consist of.
fn count(offers: &mut [Offer<'_>], literals: &[Vec<usize>], change: impl Fn(&mut usize)) {
    for piece in literals.iter().flatten() {
        if let Some(offer) = offers.get_mut(*piece) {
            change(&mut offer.count);
        }
    }
}

/// The distinct pieces of a literal that do not occur in traffic.
fn pieces_of<'a>(literal: &'a str, traffic: &HashSet<&[u8]>) -> Vec<&'a str> {
    let mut pieces: Vec<&str> = (0..literal.len())
        .filter_map(|start| literal.get(start..start + PIECE))
        .filter(|piece| !traffic.contains(piece.as_bytes()))
        .collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// How common each byte is in traffic, from 0 to 1; two bytes in a hundred count as wholly common.
fn byte_costs() -> Vec<f64> {
    let mut costs = vec![0.0_f64; 256];
    for byte in TRAFFIC.bytes() {
        if let Some(cost) = costs.get_mut(usize::from(byte)) {
            *cost = (*cost + 50.0 / TRAFFIC.len() as f64).min(1.0);
        }
    }
    costs
}

/// The mean cost of a piece's bytes: common ones make false candidates, because the search mixes the bytes of pieces.
fn cost(piece: &str, costs: &[f64]) -> f64 {
    let sum: f64 = piece.bytes().filter_map(|byte| costs.get(usize::from(byte))).sum();
    sum / PIECE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_literal_contains_a_piece_and_traffic_none() {
        let literals =
            ["avail mem", "mem usage", "available_gpu_mem", "KV Cache", "Mamba Cache", "GB", "Decode batch"];
        let pieces = cover(&literals);
        for literal in literals {
            assert!(pieces.iter().any(|piece| literal.contains(piece.as_str())), "{literal}: {pieces:?}");
        }
        assert!(pieces.contains(&"GB".to_owned()) && pieces.contains(&"Decode batch".to_owned()));
        let quiet = pieces.iter().filter(|piece| piece.len() == PIECE);
        assert!(quiet.clone().all(|piece| !TRAFFIC.contains(piece.as_str())), "{pieces:?}");
        assert!(quiet.count() <= 3, "{pieces:?}");
    }

    #[test]
    fn kindred_literals_share_pieces_so_that_the_search_stays_vectorised() {
        // Above 64 literals the regex crate leaves Teddy for an automaton, ten times slower.
        let stages = ["weights", "memory pool", "cuda graph", "CUDA graph", "torch distributed"];
        let words = ["avail mem", "mem usage", "begin. avail", "end. elapsed", "Not enough memory"];
        let literals: Vec<String> = stages
            .iter()
            .flat_map(|stage| words.map(|word| format!("{stage} {word}")))
            .chain(words.map(String::from))
            .collect();
        let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
        let pieces = cover(&literals);
        assert!(pieces.len() <= words.len(), "{pieces:?}");
    }
}
