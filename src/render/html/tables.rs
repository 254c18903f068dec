//! Sheets as HTML tables: captions, scopes, figures to the right. A wide one scrolls by itself, not the page.

use super::{Shown, class};
use crate::render::sheet::{Align, Note, Sheet, SheetRow};
use maud::{Markup, html};

/// A sheet as a table.
pub(super) fn table(sheet: &Sheet, caption: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption_text(caption)) {
            table {
                caption { (Shown(caption)) }
                thead {
                    tr {
                        @for (title, align) in &sheet.columns { th scope="col" class=(side(*align)) { (Shown(title)) } }
                    }
                }
                tbody {
                    @for one in &sheet.rows {
                        (row(sheet, one))
                        @for one in &one.notes { (note(sheet, one)) }
                    }
                }
            }
        }
    }
}

fn caption_text(caption: &str) -> String {
    crate::text::clean(caption, false)
}

fn side(align: Align) -> &'static str {
    match align {
        Align::Left => "left",
        Align::Right => "right",
    }
}

fn row(sheet: &Sheet, row: &SheetRow) -> Markup {
    let mut cells = row.cells.iter().zip(&sheet.columns);
    html! {
        tr class=(class(row.tone)) {
            @if let Some((name, _)) = cells.next() { th scope="row" { (Shown(name)) } }
            @for (cell, (_, align)) in cells { td class=(side(*align)) { (Shown(cell)) } }
        }
    }
}

/// A note: its label from the left to its figure, its remark behind.
fn note(sheet: &Sheet, note: &Note) -> Markup {
    let columns = sheet.columns.len();
    let Some((column, figure)) = note.figure.as_ref().filter(|(column, _)| *column > 0 && *column < columns)
    else {
        let words = if note.remark.is_empty() {
            note.label.clone()
        } else {
            format!("{} {}", note.label, note.remark)
        };
        return html! { tr.note.(class(note.tone)) { td colspan=(columns) { (Shown(&words)) } } };
    };
    let after = columns - column - 1;
    html! {
        tr.note.(class(note.tone)) {
            td colspan=(column) { (Shown(&note.label)) }
            td.right { (Shown(figure)) }
            @if after > 0 { td colspan=(after) { (Shown(&note.remark)) } }
        }
    }
}
