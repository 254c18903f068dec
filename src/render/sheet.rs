//! Sheets: tables with rules and nothing else, figures to the right, and notes between the rows.
//!
//! comfy-table lays out the rows; notes span several columns, which it cannot do, so they are set over its columns here.

use super::page::{Page, Tone};
use crate::text;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};

/// Columns to the left of a sheet.
const INDENT: &str = "  ";
/// Columns by which notes are indented below their rows.
const NOTE_INDENT: &str = "  ";
/// Columns between two columns.
const GUTTER: usize = 2;
/// A first column is not cut below this.
const LEAST_ENTRY: usize = 12;

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// A line between the rows. Its label may run over the columns before `figure`'s; without a figure over all of them.
#[derive(Debug, Clone)]
pub(super) struct Note {
    /// The words.
    pub(super) label: String,
    /// A figure, and the column that it stands in.
    pub(super) figure: Option<(usize, String)>,
    /// What stands behind the figure.
    pub(super) remark: String,
    /// How it looks.
    pub(super) tone: Tone,
}

/// A row and the notes below it.
#[derive(Debug, Clone)]
pub(super) struct SheetRow {
    /// One cell a column.
    pub(super) cells: Vec<String>,
    /// How it looks.
    pub(super) tone: Tone,
    /// Notes below it.
    pub(super) notes: Vec<Note>,
}

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Sheet {
    /// Titles and alignment.
    pub(super) columns: Vec<(String, Align)>,
    /// The rows.
    pub(super) rows: Vec<SheetRow>,
}

impl Sheet {
    /// Writes the sheet, cut to the page in its first column, then in its last.
    pub(super) fn write(mut self, page: &mut Page) {
        self.align_tolerances();
        self.clean(page);
        let widths = self.widths(page);
        self.fit(&widths, page.ellipsis());
        let table = self.table(&widths);
        let mut lines = table.lines();
        let mut next = |page: &mut Page, tone: Tone| {
            let line = lines.next().unwrap_or_default();
            page.line([(Tone::Plain, INDENT.to_string()), (tone, line)]);
        };
        next(page, Tone::Dim);
        next(page, Tone::Dim);
        for row in &self.rows {
            next(page, row.tone);
            for note in &row.notes {
                write_note(page, note, &widths);
            }
        }
        next(page, Tone::Dim);
    }

    /// Pads figures without a tolerance where others of the column have one, so that the digits stand below each other.
    fn align_tolerances(&mut self) {
        let suffix =
            |cell: &str| cell.find(" ± ").map_or(0, |at| text::width(cell.get(at..).unwrap_or_default()));
        for (index, _) in self.columns.iter().enumerate().filter(|(_, (_, align))| *align == Align::Right) {
            let mut figures: Vec<&mut String> = Vec::new();
            for row in &mut self.rows {
                figures.extend(row.cells.get_mut(index));
                let notes = row.notes.iter_mut().filter_map(|note| note.figure.as_mut());
                figures.extend(notes.filter(|(column, _)| *column == index).map(|(_, figure)| figure));
            }
            let widest = figures.iter().map(|figure| suffix(figure)).max().unwrap_or(0);
            for figure in figures.into_iter().filter(|figure| !figure.is_empty()) {
                let padding = widest - suffix(figure);
                figure.push_str(&" ".repeat(padding));
            }
        }
    }

    fn clean(&mut self, page: &Page) {
        for (title, _) in &mut self.columns {
            *title = page.words(title);
        }
        for row in &mut self.rows {
            for cell in &mut row.cells {
                *cell = page.words(cell);
            }
            for note in &mut row.notes {
                note.label = page.words(&note.label);
                note.remark = page.words(&note.remark);
                if let Some((_, figure)) = &mut note.figure {
                    *figure = page.words(figure);
                }
            }
        }
    }

    /// How wide each column is: as its widest cell, the first and the last less where the page is too narrow.
    fn widths(&self, page: &Page) -> Vec<usize> {
        let of_column = |index: usize, title: &str| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| text::width(cell));
            cells.max().unwrap_or(0).max(text::width(title)).max(1)
        };
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(index, (title, _))| of_column(index, title)).collect();
        let room: Vec<usize> = widths.clone();
        if let Some(first) = widths.first_mut() {
            *first += self
                .rows
                .iter()
                .flat_map(|row| &row.notes)
                .map(|note| lacking(note, &room))
                .max()
                .unwrap_or(0);
        }
        let taken = INDENT.len() + widths.iter().sum::<usize>() + GUTTER * widths.len().saturating_sub(1);
        let mut over = taken.saturating_sub(page.width());
        if let Some(first) = widths.first_mut() {
            let cut = over.min(first.saturating_sub(LEAST_ENTRY));
            *first -= cut;
            over -= cut;
        }
        if let Some(last) = widths.last_mut() {
            *last = last.saturating_sub(over).max(1);
        }
        widths
    }

    fn fit(&mut self, widths: &[usize], ellipsis: &str) {
        for row in &mut self.rows {
            for (cell, width) in row.cells.iter_mut().zip(widths) {
                *cell = text::cut(cell, *width, ellipsis);
            }
        }
        for ((title, _), width) in self.columns.iter_mut().zip(widths) {
            *title = text::cut(title, *width, ellipsis);
        }
    }

    fn table(&self, widths: &[usize]) -> Table {
        let rule = LineStyle::none().fill('─').junction('─');
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(rule).bottom_border(rule));
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|(title, _)| title.as_str()));
        for row in &self.rows {
            table.add_row(row.cells.iter().map(String::as_str));
        }
        let last = widths.len().saturating_sub(1);
        for (index, width) in widths.iter().enumerate() {
            let Some(column) = table.column_mut(index) else { continue };
            // The other half of the gutter is the junction that comfy-table draws between columns.
            let padding = if index == last { 0 } else { 1 };
            column.set_padding((0, padding));
            let wide = u16::try_from(*width).unwrap_or(u16::MAX).saturating_add(padding);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(wide)));
            if matches!(self.columns.get(index), Some((_, Align::Right))) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// The column at which a note's figure ends, counted from the sheet's indent.
fn end_of(column: usize, widths: &[usize]) -> usize {
    widths.iter().take(column + 1).map(|width| width + GUTTER).sum::<usize>().saturating_sub(GUTTER)
}

/// How many columns a note lacks for its label and its figure.
fn lacking(note: &Note, widths: &[usize]) -> usize {
    let Some((column, figure)) = &note.figure else { return 0 };
    let needed = NOTE_INDENT.len() + text::width(&note.label) + 1 + text::width(figure);
    needed.saturating_sub(end_of(*column, widths))
}

fn write_note(page: &mut Page, note: &Note, widths: &[usize]) {
    let mark = format!("{INDENT}{NOTE_INDENT}");
    let Some((column, figure)) = &note.figure else {
        let pieces: Vec<String> = note.label.split(" · ").map(str::to_string).collect();
        return page.pieces_behind((Tone::Plain, &mark), note.tone, &pieces);
    };
    let end = INDENT.len() + end_of(*column, widths);
    let room = end.saturating_sub(mark.len() + text::width(figure) + 1);
    let label = text::pad(&text::cut(&note.label, room, page.ellipsis()), room + 1);
    let remark = if note.remark.is_empty() { String::new() } else { format!("  {}", note.remark) };
    page.line([(Tone::Plain, mark), (note.tone, format!("{label}{figure}")), (Tone::Dim, remark)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_notes_and_rules_stand_in_columns() {
        let sheet = Sheet {
            columns: vec![("entry".into(), Align::Left), ("used".into(), Align::Right)],
            rows: vec![SheetRow {
                cells: vec!["weights of 模型".into(), "15,340".into()],
                tone: Tone::Plain,
                notes: vec![Note {
                    label: "of it".into(),
                    figure: Some((1, "40".into())),
                    remark: "logged".into(),
                    tone: Tone::Dim,
                }],
            }],
        };
        let mut page = Page::new(60, false);
        sheet.write(&mut page);
        insta::assert_snapshot!(page.finish(false), @r"
          entry              used
          ───────────────────────
          weights of 模型  15,340
            of it              40  logged
          ───────────────────────
        ");
    }
}
