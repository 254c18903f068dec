//! Pictures as files: complete, well-formed, deaf to what the log says.

use super::*;
use crate::render::testing::{ONE_RANK, UNBALANCED, analysed, arguments, launches, sample};
use quick_xml::events::Event;

/// Element names of a well-formed document.
fn elements(xml: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut names = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => {
                assert!(tag.attributes().all(|attribute| attribute.is_ok()));
                names.push(tag.name().as_ref().to_string());
            }
            Event::Eof => return names,
            _ => {}
        }
    }
}

#[test]
fn a_waterfall_is_a_complete_file() {
    let one = launches("server.log", ONE_RANK, Some(arguments(1, 0.85)));
    let dump = vec![sample(0, 123_384, "Sun Nov 29 13:52:06 2026", &[])];
    let picture = svg(&analysed(one, dump)).unwrap();
    let names = elements(&picture);
    assert_eq!(names.first().map(String::as_str), Some("svg"));
    assert!(!names.iter().any(|name| name == "script"));
    assert!(picture.contains("role=\"img\"") && picture.contains("prefers-color-scheme"), "{picture}");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("one_rank_svg", picture.replace(STYLE, "").replace("><", ">\n<"));
    });
}

#[test]
fn the_poorest_rank_is_drawn() {
    let both = launches("server.log", UNBALANCED, Some(arguments(2, 0.8)));
    let picture = svg(&analysed(both, Vec::new())).unwrap();
    assert!(picture.contains("Where the memory of TP1, GPU 1 went"), "{picture}");
}

#[test]
fn without_figures_there_is_no_picture() {
    assert_eq!(svg(&analysed(Vec::new(), Vec::new())), None);
}

#[test]
fn words_of_the_log_stay_words() {
    let log =
        ONE_RANK.replace("Memory pool end.", "Odd </text><script>alert(1)</script> & \u{202E}pool end.");
    let picture = svg(&analysed(launches("\"><script>.log", &log, None), Vec::new())).unwrap();
    assert!(!elements(&picture).iter().any(|name| name == "script"), "{picture}");
    assert!(!picture.contains('\u{202E}'));
}

#[test]
fn steps_of_an_axis_are_round() {
    assert_eq!(round_step(143_771.0, 5.0), 50_000.0);
    assert_eq!(round_step(44.0, 5.0), 10.0);
    assert_eq!(round_step(0.0, 5.0), 1.0);
    assert_eq!(percent(f64::NAN), "0.000%");
}
