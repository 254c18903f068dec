//! `vramledger snapshot` for a terminal: what PyTorch's allocator holds, by pool and by place in the program.

use super::names::counted;
use super::page::{Page, Tone};
use super::sheet::{Align, Sheet, SheetRow};
use crate::quantity::{Quantity, mib_whole};
use crate::snapshot::{DeviceSummary, Form, Pool, SiteSummary, SizeClass, Totals};

/// A snapshot to show.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotView<'s> {
    /// The path as given.
    pub name: &'s str,
    /// How it was written.
    pub form: Form,
    /// Its sums.
    pub devices: &'s [DeviceSummary],
    /// So many allocation sites are shown.
    pub most_sites: usize,
}

/// One snapshot as text of this width; escape codes only with `colour`.
pub fn snapshot(view: &SnapshotView<'_>, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, false);
    let form = match view.form {
        Form::Pickle(protocol) => format!("pickle, protocol {protocol}"),
        Form::Json => "JSON".to_string(),
    };
    page.pieces_behind((Tone::Plain, ""), Tone::Plain, &[view.name.to_string(), form]);
    if view.devices.is_empty() {
        page.line([(Tone::Plain, "PyTorch held no memory: the snapshot has no segments.".to_string())]);
    }
    for device in view.devices {
        page.gap();
        write(&mut page, device, view.most_sites);
    }
    page.finish(colour)
}

fn write(page: &mut Page, device: &DeviceSummary, most_sites: usize) {
    page.line([
        (Tone::Strong, format!("PyTorch on its GPU {}", device.device)),
        (Tone::Dim, "  as the process counts; CUDA_VISIBLE_DEVICES renumbers".to_string()),
    ]);
    pools(page, device);
    explain(page, device);
    sites(page, device, most_sites);
}

fn pools(page: &mut Page, device: &DeviceSummary) {
    let figures = ["segments", "reserved", "allocated", "inactive", "largest free"];
    let mut columns = vec![("MiB, pool".to_string(), Align::Left)];
    columns.extend(figures.map(|title| (title.to_string(), Align::Right)));
    let mut rows: Vec<SheetRow> =
        device.pools.iter().map(|pool| row(pool_name(pool.pool), &pool.totals, Tone::Plain)).collect();
    rows.push(row("all = reserved by PyTorch".to_string(), &device.totals, Tone::Strong));
    Sheet { columns, rows }.write(page);
}

fn row(name: String, totals: &Totals, tone: Tone) -> SheetRow {
    let cells = vec![
        name,
        totals.segments.to_string(),
        figure(totals.reserved),
        figure(totals.allocated),
        figure(totals.inactive),
        totals.largest_free.map(figure).unwrap_or_default(),
    ];
    SheetRow { cells, tone, notes: Vec::new() }
}

/// Whole MiB, or that there is less than one.
fn figure(quantity: Quantity) -> String {
    match mib_whole(quantity) {
        zero if zero == "0" && quantity.low() > 0 => "< 1".to_string(),
        text => text,
    }
}

fn pool_name(pool: Pool) -> String {
    match pool {
        Pool::Ordinary { class, expandable } => {
            let class = match class {
                SizeClass::Small => "small",
                SizeClass::Large => "large",
                SizeClass::Other => "other",
            };
            format!("ordinary, {class}{}", if expandable { ", expandable" } else { "" })
        }
        Pool::Private(id) => format!("private ({}, {})", id.0, id.1),
        Pool::Unrecorded => "pool not recorded".to_string(),
    }
}

fn explain(page: &mut Page, device: &DeviceSummary) {
    let totals = &device.totals;
    let mut say = |words: String| page.prose_behind((Tone::Plain, "  "), Tone::Plain, &words);
    if device.pools.iter().any(|pool| pool.pool.is_private()) {
        say("private pools: CUDA graphs', or a torch.cuda.MemPool's; part of what is reserved, never on top"
            .into());
    }
    if let Some(share) = totals.fragmentation() {
        say(format!(
            "free and kept: {} MiB, of which empty_cache() returns {}; {:.0} % lie outside the largest free block",
            figure(totals.inactive),
            figure(totals.releasable),
            share * 100.0
        ));
    }
    if let Some(requested) = totals.requested {
        say(format!(
            "rounding of requests: {} MiB of what is allocated",
            figure(totals.allocated - requested)
        ));
    }
    if device.inconsistent > 0 {
        let segments = counted(device.inconsistent, "segment's", "segments'");
        let words =
            format!("{segments} own sums are not those of the blocks: the snapshot is damaged or edited");
        page.prose_behind((Tone::Warning, "  ▲ "), Tone::Plain, &words);
    }
}

fn sites(page: &mut Page, device: &DeviceSummary, most: usize) {
    if device.sites.is_empty() {
        let words = "no allocation sites: record them with torch.cuda.memory._record_memory_history() before start-up";
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, words);
        return;
    }
    page.gap();
    let columns = [("held by", Align::Left), ("blocks", Align::Right), ("MiB", Align::Right)];
    let rows = device.sites.iter().take(most).map(site).collect();
    Sheet { columns: columns.map(|(title, align)| (title.to_string(), align)).to_vec(), rows }.write(page);
    if device.sites.len() > most {
        let left: Quantity = device.sites.iter().skip(most).map(|site| site.held).sum();
        let more = counted(device.sites.len() - most, "more site holds", "more sites hold");
        page.line([(Tone::Dim, format!("  {more} {} MiB", figure(left)))]);
    }
}

fn site(one: &SiteSummary) -> SheetRow {
    let name = one.site.as_ref().map_or_else(
        || "(no frames recorded)".to_string(),
        |site| {
            let line = site.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{}  {}{line}", site.function, site.file)
        },
    );
    SheetRow {
        cells: vec![name, one.blocks.to_string(), figure(one.held)],
        tone: Tone::Plain,
        notes: Vec::new(),
    }
}
