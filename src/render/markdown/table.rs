//! Sheets as GitHub tables, columns padded so that they read in plain text too.

use super::escape::inline;
use crate::render::page::Tone;
use crate::render::sheet::{Align, Sheet};
use crate::text;

/// What sets a note apart from its row: a cell has no indent of its own.
const NOTE: &str = "· ";

/// A sheet as a table. Notes are rows of their own: their label, their figure in its column, their remark at the end.
pub(super) fn table(sheet: &Sheet) -> String {
    let last = sheet.columns.len().saturating_sub(1);
    let mut rows: Vec<Vec<String>> = vec![sheet.columns.iter().map(|(title, _)| inline(title)).collect()];
    for row in &sheet.rows {
        let strong = matches!(row.tone, Tone::Strong | Tone::Error);
        let cell = |cell: &String| match inline(cell) {
            cell if strong && !cell.is_empty() => format!("**{cell}**"),
            cell => cell,
        };
        rows.push(row.cells.iter().map(cell).collect());
        for note in &row.notes {
            let mut cells = vec![String::new(); sheet.columns.len()];
            let mut set = |column: usize, words: String| {
                if let Some(cell) = cells.get_mut(column) {
                    *cell = if cell.is_empty() { words } else { format!("{cell} {words}") };
                }
            };
            set(0, format!("{NOTE}{}", inline(&note.label)));
            if let Some((column, figure)) = &note.figure {
                set(*column, inline(figure));
            }
            set(last, inline(&note.remark));
            rows.push(cells);
        }
    }
    laid_out(sheet, &rows)
}

fn laid_out(sheet: &Sheet, rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| text::width(cell)).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..sheet.columns.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let columns = sheet.columns.iter().zip(&widths);
        let cells = row.iter().zip(columns.clone()).map(|(cell, ((_, align), width))| match align {
            Align::Left => text::pad(cell, *width),
            Align::Right => text::pad_front(cell, *width),
        });
        text.push_str(&format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            let rules = columns.map(|((_, align), width)| match align {
                Align::Left => "-".repeat(*width),
                Align::Right => format!("{}:", "-".repeat(*width - 1)),
            });
            text.push_str(&format!("| {} |\n", rules.collect::<Vec<_>>().join(" | ")));
        }
    }
    text
}
