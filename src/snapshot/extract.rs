//! From plain data to a snapshot: every field is checked, and each block is visited once.
//!
//! Field names and states: PyTorch, `torch/csrc/cuda/memory_snapshot.cpp` and `torch/cuda/memory.py`, 1.13 to 2.11.

use super::tree::{Tree, Value};
use super::{Block, BlockState, Form, PoolId, Segment, Site, SizeClass, Snapshot, SnapshotError};
use std::collections::HashMap;

/// Frames of a stack that are looked at for a Python one; C++ frames stand before it.
const MOST_FRAMES: usize = 256;
/// No segment or block is larger: 2^56 bytes.
const LARGEST_SIZE: i64 = 1 << 56;

/// Reads a snapshot out of plain data: the dictionary of `_snapshot()`, or the bare list of `memory_snapshot()`.
pub(super) fn snapshot(tree: &Tree, form: Form) -> Result<Snapshot, SnapshotError> {
    let shape = |problem: &str| SnapshotError::Shape(problem.to_string());
    let segments = tree.get(tree.root, "segments").unwrap_or(tree.root);
    let segments = tree.items(segments).ok_or_else(|| shape("no list of segments"))?;
    let expandable = tree
        .get(tree.root, "allocator_settings")
        .and_then(|settings| tree.get(settings, "expandable_segments"));
    let mut reader = Reader { tree, sites: Vec::new(), known: HashMap::new(), left: tree.containers() };
    let mut read = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        reader
            .visit()
            .ok_or_else(|| shape("its lists refer to the same segments or blocks over and over"))?;
        let problem = |problem: String| SnapshotError::Shape(format!("segment {index} {problem}"));
        read.push(reader.segment(*segment).map_err(problem)?);
    }
    Ok(Snapshot {
        form,
        segments: read,
        sites: reader.sites,
        expandable_segments: expandable.and_then(|value| match value {
            Value::Truth(truth) => Some(truth),
            _ => None,
        }),
    })
}

struct Reader<'t> {
    tree: &'t Tree,
    sites: Vec<Site>,
    /// Sites of stacks already seen: PyTorch stores equal stacks once.
    known: HashMap<u32, Option<usize>>,
    /// How many more segments and blocks there can be: each is a dictionary of its own in an honest file.
    left: usize,
}

impl Reader<'_> {
    fn visit(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    fn segment(&mut self, value: Value) -> Result<Segment, String> {
        let tree = self.tree;
        let blocks =
            tree.get(value, "blocks").and_then(|blocks| tree.items(blocks)).ok_or("has no blocks")?;
        let device = self.integer(value, "device").ok_or("has no device")?;
        let mut read = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            self.visit().ok_or("refers to the same blocks over and over")?;
            read.push(self.block(*block).map_err(|problem| format!("block {index} {problem}"))?);
        }
        let class = tree.get(value, "segment_type").and_then(|class| tree.text(class));
        Ok(Segment {
            device: u32::try_from(device).map_err(|_| format!("has device {device}"))?,
            size_class: match class.as_deref() {
                Some("small") => SizeClass::Small,
                Some("large") => SizeClass::Large,
                _ => SizeClass::Other,
            },
            pool: tree.get(value, "segment_pool_id").and_then(|id| self.pool(id)),
            expandable: tree.get(value, "is_expandable") == Some(Value::Truth(true)),
            total: self.size(value, "total_size")?.ok_or("has no total_size")?,
            allocated: self.size(value, "allocated_size")?.ok_or("has no allocated_size")?,
            active: self.size(value, "active_size")?.ok_or("has no active_size")?,
            requested: self.size(value, "requested_size")?,
            blocks: read,
        })
    }

    fn block(&mut self, value: Value) -> Result<Block, String> {
        let state =
            self.tree.get(value, "state").and_then(|state| self.tree.text(state)).ok_or("has no state")?;
        let state = match state.as_ref() {
            "active_allocated" => BlockState::Allocated,
            // The second is how releases before 2.2 call it.
            "active_awaiting_free" | "active_pending_free" => BlockState::AwaitingFree,
            "inactive" => BlockState::Inactive,
            other => {
                return Err(format!(
                    "has the unknown state {:?}",
                    other.chars().take(40).collect::<String>()
                ));
            }
        };
        let size = self.size(value, "size")?.ok_or("has no size")?;
        Ok(Block { size, state, site: self.frames(value).and_then(|frames| self.site(frames)) })
    }

    /// The stack of a block: its own, or in releases 1.13 to 2.0 that of its latest allocation.
    fn frames(&self, block: Value) -> Option<Value> {
        let of_history = || {
            let history = self.tree.items(self.tree.get(block, "history")?)?;
            self.tree.get(*history.first()?, "frames")
        };
        self.tree.get(block, "frames").or_else(of_history)
    }

    /// The innermost Python frame outside PyTorch itself, else the innermost Python frame.
    fn site(&mut self, frames: Value) -> Option<usize> {
        let Value::Sequence(number) = frames else { return None };
        if let Some(known) = self.known.get(&number) {
            return *known;
        }
        let sites = self.tree.items(frames)?.iter().take(MOST_FRAMES).filter_map(|frame| self.frame(*frame));
        let mut innermost = None;
        let mut outside = None;
        for site in sites {
            if !is_inside_torch(&site.file) {
                outside = Some(site);
                break;
            }
            innermost.get_or_insert(site);
        }
        let found = outside.or(innermost).map(|site| {
            self.sites.push(site);
            self.sites.len() - 1
        });
        self.known.insert(number, found);
        found
    }

    /// A frame of a Python file. C++ frames have none.
    fn frame(&self, frame: Value) -> Option<Site> {
        let file = self.tree.get(frame, "filename").and_then(|file| self.tree.text(file))?;
        let function = self.tree.get(frame, "name").and_then(|name| self.tree.text(name)).unwrap_or_default();
        file.ends_with(".py").then(|| Site {
            function: function.chars().take(120).collect(),
            file: from_package(&file),
            line: self.integer(frame, "line").and_then(|line| u64::try_from(line).ok()),
        })
    }

    fn pool(&self, id: Value) -> Option<PoolId> {
        match self.tree.items(id)? {
            [Value::Integer(one), Value::Integer(other)] => Some(PoolId(*one, *other)),
            _ => None,
        }
    }

    fn integer(&self, record: Value, key: &str) -> Option<i64> {
        match self.tree.get(record, key)? {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// A size in bytes. `None` where it is absent.
    fn size(&self, record: Value, key: &str) -> Result<Option<i128>, String> {
        match self.tree.get(record, key) {
            None => Ok(None),
            Some(Value::Integer(size @ 0..=LARGEST_SIZE)) => Ok(Some(size.into())),
            Some(_) => Err(format!("has a {key} that is no size")),
        }
    }
}

/// A file's path from its package on: what stands before says nothing about the program, but of the machine.
fn from_package(path: &str) -> String {
    let path = ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|folder| path.rfind(folder).and_then(|at| path.get(at + folder.len()..)))
        .unwrap_or(path);
    let characters = path.chars().count();
    path.chars().skip(characters.saturating_sub(200)).collect()
}

fn is_inside_torch(file: &str) -> bool {
    file.starts_with("torch/") || file.contains("/torch/")
}
