//! The checked-in files that are generated from the definitions are up to date.
//!
//! `FANIN_WRITE=1 cargo test -p fanin-scenario --test generated` writes them anew.

use std::path::PathBuf;

fn holds(path: &str, wanted: &str) {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("FANIN_WRITE").is_some() {
        std::fs::write(&full, wanted).unwrap();
    }
    let present = std::fs::read_to_string(&full).unwrap_or_default();
    let differs = present
        .lines()
        .zip(wanted.lines())
        .position(|(a, b)| a != b)
        .unwrap_or(present.lines().count().min(wanted.lines().count()));
    assert!(
        present == wanted,
        "{path} is not what the definitions say, from line {} on; write it anew: FANIN_WRITE=1 cargo test -p fanin-scenario --test generated",
        differs + 1
    );
}

#[test]
fn the_reference_page_is_up_to_date() {
    holds("docs/scenario.md", &fanin_scenario::reference());
}

#[test]
fn the_python_classes_are_up_to_date() {
    holds("python/fanin/_scenario_types.py", &fanin_scenario::python_types());
}
