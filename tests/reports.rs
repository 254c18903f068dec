//! Reports that travel, for every recording: Markdown as GitHub reads it, HTML as a browser parses it, and the same bytes for
//! the same input. A log full of hostile words must not become markup in any format.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vramledger::analysis::{Analysis, Settings, analyse};
use vramledger::input::Source;
use vramledger::read::read_source;
use vramledger::render::{csv, html, markdown, svg};

fn fixtures() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("fixtures")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("server.log").exists())
        // A case may be that there is nothing to read.
        .filter(|path| std::fs::metadata(path.join("server.log")).unwrap().len() > 0)
        .collect();
    folders.sort();
    assert!(folders.len() > 20);
    folders
}

fn analysis_of(sources: &[Source]) -> Analysis {
    let readings = sources.iter().map(|source| read_source(source).unwrap()).collect();
    analyse(readings, &Settings::default())
}

fn analysed(folder: &Path) -> Analysis {
    let files = [folder.join("server.log"), folder.join("nvidia-smi.txt")];
    let sources: Vec<Source> = files.into_iter().filter(|path| path.exists()).map(Source::Path).collect();
    analysis_of(&sources)
}

/// A parsed page: every element with its attributes, and the text that is shown.
#[derive(Default)]
struct Page {
    elements: Vec<(String, BTreeMap<String, String>)>,
    text: String,
}

/// Parses as browsers do; what they would have to repair is a failure.
fn parsed(page: &str) -> Page {
    let dom = html5ever::parse_document(RcDom::default(), Default::default()).one(page);
    let errors = dom.errors.borrow();
    assert!(errors.is_empty(), "{errors:?}");
    let mut found = Page::default();
    walk(&dom.document, &mut found);
    found
}

fn walk(node: &Handle, page: &mut Page) {
    match &node.data {
        NodeData::Element { name, attrs, .. } => {
            let attributes = attrs
                .borrow()
                .iter()
                .map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()))
                .collect();
            page.elements.push((name.local.to_string(), attributes));
        }
        NodeData::Text { contents } => page.text.push_str(&contents.borrow()),
        _ => {}
    }
    for child in node.children.borrow().iter() {
        walk(child, page);
    }
}

/// Ids are there once, links and labels lead somewhere, nothing runs and nothing is fetched.
fn check(page: &Page) {
    let mut ids = BTreeSet::new();
    for (name, attributes) in &page.elements {
        if let Some(id) = attributes.get("id") {
            assert!(ids.insert(id.clone()), "{id} is there twice");
        }
        assert!(
            !["script", "iframe", "img", "link", "object", "embed", "base", "form"].contains(&name.as_str())
        );
        assert!(
            !attributes.keys().any(|key| key.starts_with("on") || key == "src" || key == "style"),
            "{name}"
        );
    }
    for (name, attributes) in &page.elements {
        if let Some(target) = attributes.get("href") {
            assert!(target.strip_prefix('#').is_some_and(|id| ids.contains(id)), "{target}");
        }
        for label in attributes.get("aria-labelledby").into_iter().flat_map(|ids| ids.split(' ')) {
            assert!(ids.contains(label), "{label}");
        }
        if name == "th" {
            assert!(attributes.contains_key("scope"));
        }
        if name == "svg" {
            assert!(
                attributes.contains_key("aria-hidden")
                    || attributes.get("role").is_some_and(|role| role == "img")
            );
        }
    }
}

#[test]
fn html_of_every_recording_is_well_formed_and_complete_in_itself() {
    for folder in fixtures() {
        let analysis = analysed(&folder);
        let page = html(&analysis);
        assert_eq!(page, html(&analysed(&folder)), "{}", folder.display());
        let parsed = parsed(&page);
        check(&parsed);
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("url("), "{page}");
        for launch in &analysis.launches {
            for finding in &launch.findings {
                assert!(
                    parsed.text.contains(finding.rule.code),
                    "{}: {}",
                    folder.display(),
                    finding.rule.code
                );
            }
        }
        let ledgers = analysis.launches.iter().flat_map(|launch| &launch.ledgers);
        let figures = ledgers.into_iter().any(|ledger| ledger.opening.is_some());
        let pictures = parsed.elements.iter().any(|(name, _)| name == "svg");
        assert_eq!(pictures, figures, "{}", folder.display());
    }
}

#[test]
fn a_finding_leads_to_its_line_and_back() {
    let page = html(&analysed(Path::new("fixtures/tp2-unbalanced-warns-0.5.12")));
    let parsed = parsed(&page);
    let links: Vec<&String> =
        parsed.elements.iter().filter_map(|(_, attributes)| attributes.get("href")).collect();
    for target in ["#finding-1-1", "#log-1-25", "#log-1-20"] {
        assert!(links.iter().any(|link| *link == target), "{target}: {links:?}");
    }
}

fn github() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_GFM
}

/// The cells of each row of each table, the code blocks, and whether anything is a link or an image.
#[derive(Default)]
struct Rendered {
    rows: Vec<Vec<String>>,
    tables: usize,
    code: Vec<String>,
    links: usize,
    html: String,
}

fn rendered(text: &str) -> Rendered {
    let mut found = Rendered::default();
    let mut in_code = false;
    for event in Parser::new_ext(text, github()) {
        match event {
            Event::Start(Tag::Table(_)) => found.tables += 1,
            Event::Start(Tag::TableHead | Tag::TableRow) => found.rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => found.rows.last_mut().unwrap().push(String::new()),
            Event::Start(Tag::CodeBlock(_)) => {
                in_code = true;
                found.code.push(String::new());
            }
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => found.links += 1,
            Event::Html(html) | Event::InlineHtml(html) => found.html.push_str(&html),
            Event::Text(words) if in_code => found.code.last_mut().unwrap().push_str(&words),
            Event::Text(words) | Event::Code(words) => {
                if let Some(cell) = found.rows.last_mut().and_then(|row| row.last_mut()) {
                    cell.push_str(&words);
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn markdown_of_every_recording_keeps_its_tables_and_its_evidence() {
    for folder in fixtures() {
        let analysis = analysed(&folder);
        let text = markdown(&analysis, None);
        assert_eq!(text, markdown(&analysed(&folder), None));
        let found = rendered(&text);
        let name = folder.display();
        // One table of key figures a launch, and a ledger for most.
        assert!(found.tables >= analysis.launches.len(), "{name}");
        assert!(found.rows.iter().all(|row| [3, 5].contains(&row.len())), "{name}: {:?}", found.rows);
        assert_eq!(found.links, 0, "{name}");
        assert_eq!(found.html.replace("<details>", "").replace("</details>", "").trim(), "", "{name}");
        for launch in &analysis.launches {
            for place in launch.findings.iter().filter_map(|finding| finding.places.first()) {
                let place = place.to_string();
                assert!(found.code.iter().any(|block| block.contains(&place)), "{name}: {place}");
            }
        }
        let shorter = markdown(&analysis, Some(1500));
        assert!(shorter.chars().count() <= 1500, "{name}");
        assert!(
            text.len() <= 1500 || shorter.contains("Left out to stay within 1500 characters"),
            "{name}: {shorter}"
        );
    }
}

/// A log whose words try everything: in a label, a model path, a process name and a file name.
fn hostile(folder: &Path) -> Analysis {
    let log = folder.join("<b>|`x`_@me.log");
    let words = "</pre></td><script>alert(1)</script> | `` ``` # [x](https://example.org) @someone \u{202e}\u{1b}[2J=cmd";
    let lines = [
        format!("[2026-11-29 13:51:41] server_args=ServerArgs(model_path='/m/{words}', tp_size=1)"),
        "[2026-11-29 13:51:42] Load weight begin. avail mem=139.13 GB".to_string(),
        "[2026-11-29 13:51:43] Load weight end. avail mem=124.15 GB, mem usage=17.98 GB.".to_string(),
        format!("[2026-11-29 13:51:43] ={words} stage begin. avail mem=121.00 GB"),
        format!("[2026-11-29 13:51:44] ={words} stage end. avail mem=100.65 GB"),
        format!("[2026-11-29 13:51:45] {words} takes 12.00 GB of GPU memory"),
        format!(
            "[2026-11-29 13:51:46] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {words}"
        ),
    ];
    std::fs::write(&log, lines.join("\n") + "\n").unwrap();
    let dump = folder.join("smi.csv");
    std::fs::write(
        &dump,
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 7, </script><img src=x onerror=alert(1)> | `x`, 512 MiB\n",
    )
    .unwrap();
    analysis_of(&[Source::Path(log), Source::Path(dump)])
}

#[test]
fn hostile_words_are_words_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let analysis = hostile(folder.path());
    assert!(!analysis.launches.is_empty() && !analysis.launches[0].findings.is_empty());

    let page = html(&analysis);
    let parsed = parsed(&page);
    check(&parsed);
    assert!(parsed.text.contains("<script>alert(1)</script>"), "the words are shown: {}", parsed.text);

    let text = markdown(&analysis, None);
    let found = rendered(&text);
    assert!(found.rows.iter().all(|row| [3, 5].contains(&row.len())), "{:?}", found.rows);
    assert_eq!(found.links, 0, "{text}");
    assert!(!found.html.contains("script") && !found.html.contains("img"), "{}", found.html);
    // Outside of code, GitHub would make a mention of it.
    let outside: String = text.split("\n```").step_by(2).collect();
    assert!(!outside.contains("@someone") && !outside.contains("https://"), "{outside}");

    let picture = svg(&analysis).unwrap();
    let mut reader = quick_xml::Reader::from_str(&picture);
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Start(tag) => assert_ne!(tag.name().as_ref(), "script"),
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }

    let cells = csv(&analysis).unwrap();
    let mut rows = ::csv::Reader::from_reader(cells.as_bytes());
    let headers = rows.headers().unwrap().clone();
    let mut seen = 0;
    for row in rows.records().map(Result::unwrap) {
        for (header, cell) in headers.iter().zip(row.iter()) {
            let number = header.ends_with("_mib") && cell.parse::<f64>().is_ok();
            assert!(number || !cell.starts_with(['=', '+', '-', '@']), "{header}: {cell}");
            seen += usize::from(cell.starts_with("'="));
        }
    }
    assert!(seen > 0, "a label that would be a formula is there: {cells}");

    for report in [&page, &text, &picture, &cells] {
        assert!(!report.contains('\u{202e}') && !report.contains('\u{1b}'));
    }
}

#[test]
fn the_picture_in_the_documentation_is_the_current_one() {
    let folder = Path::new("fixtures/tp1-normal-0.5.12");
    let picture = svg(&analysed(folder)).unwrap();
    let kept = std::fs::read_to_string("docs/waterfall.svg").unwrap_or_default();
    assert!(
        picture == kept,
        "docs/waterfall.svg is not what is drawn now; make it anew: cargo run -- {0}/server.log --smi {0}/nvidia-smi.txt \
         --format svg -o docs/waterfall.svg",
        folder.display()
    );
}
