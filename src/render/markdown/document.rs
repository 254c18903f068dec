//! The document as blocks, and what goes first where a ticket is too small for all of them.

/// Blocks in the order in which they are read.
#[derive(Debug, Default)]
pub(super) struct Document {
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    /// What it is called where it was left out; `None` for what must stay.
    name: Option<String>,
    text: String,
}

impl Document {
    /// Adds a block that no limit drops while anything else is left.
    pub(super) fn always(&mut self, text: String) {
        self.blocks.push(Block { name: None, text });
    }

    /// Adds a block, and what to call it where it is left out.
    pub(super) fn block(&mut self, name: &str, text: String) {
        self.blocks.push(Block { name: Some(name.to_string()), text });
    }

    /// Adds a remark: dropped like a block, and not missed.
    pub(super) fn remark(&mut self, text: String) {
        self.block("", text);
    }

    /// The text, of at most `most` characters where that is set.
    pub(super) fn finish(self, most: Option<usize>) -> String {
        let whole = joined(&self.blocks, "");
        match most {
            Some(most) if whole.chars().count() > most => self.dropped(most),
            _ => whole,
        }
    }

    /// Without the last blocks: as few as the limit asks for.
    fn dropped(mut self, most: usize) -> String {
        let mut names: Vec<String> = Vec::new();
        while let Some(last) = self.blocks.iter().rposition(|block| block.name.is_some()) {
            let block = self.blocks.remove(last);
            names.insert(0, block.name.unwrap_or_default());
            let text = joined(&self.blocks, &left_out(most, &names));
            if text.chars().count() <= most {
                return text;
            }
        }
        let text = joined(
            &self.blocks,
            &format!("Left out to stay within {most} characters: all but the summary.\n"),
        );
        if text.chars().count() <= most {
            return text;
        }
        // Not even the summary fits: its first lines are worth more than nothing.
        let note =
            format!("\nLeft out to stay within {most} characters: the rest of the summary, and all else.\n");
        let room = most.saturating_sub(note.chars().count());
        let kept: String = joined(&self.blocks, "").chars().take(room).collect();
        let lines = kept.rfind('\n').and_then(|at| kept.get(..=at)).unwrap_or(&kept);
        format!("{lines}{note}").chars().take(most).collect()
    }
}

fn joined(blocks: &[Block], end: &str) -> String {
    let texts = blocks.iter().map(|block| block.text.as_str()).chain([end]);
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What was dropped, in the order of the report; names that repeat are counted.
fn left_out(most: usize, names: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        match counted.iter_mut().find(|(known, _)| known == name) {
            Some((_, times)) => *times += 1,
            None => counted.push((name, 1)),
        }
    }
    const MOST: usize = 12;
    let mut shown: Vec<String> = counted
        .iter()
        .take(MOST)
        .map(|(name, times)| if *times > 1 { format!("{name} ({times} ×)") } else { name.to_string() })
        .collect();
    if counted.len() > MOST {
        shown.push(format!("and {} more parts", counted.len() - MOST));
    }
    format!("Left out to stay within {most} characters: {}.\n", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let mut document = Document::default();
        document.always("verdict\n".into());
        document.block("the ledger", format!("{}\n", "l".repeat(100)));
        document.block("finding A", format!("{}\n", "a".repeat(100)));
        document.block("finding B", format!("{}\n", "b".repeat(100)));
        document
    }

    #[test]
    fn detail_goes_from_the_bottom_and_is_named() {
        let whole = document().finish(None);
        assert_eq!(document().finish(Some(whole.len())), whole);
        let shorter = document().finish(Some(whole.len() - 1));
        assert!(shorter.contains("aaa") && !shorter.contains("bbb"), "{shorter}");
        assert!(shorter.ends_with("characters: finding B.\n"), "{shorter}");
        let least = document().finish(Some(100));
        assert!(
            least.starts_with("verdict\n") && least.ends_with("the ledger, finding A, finding B.\n"),
            "{least}"
        );
    }

    #[test]
    fn no_limit_is_exceeded() {
        for most in 0..400 {
            assert!(document().finish(Some(most)).chars().count() <= most, "{most}");
        }
    }
}
