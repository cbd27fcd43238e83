//! A sound text, what a case changes of it, and what is said against it.

use fanin_scenario::{render, Scenario};
use std::path::PathBuf;

/// A text with parts of it changed, and lines added. A change that finds nothing to change fails.
#[track_caller]
pub fn edited(text: &str, changes: &[(&str, &str)], added: &str) -> String {
    let mut text = text.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "nothing to change: {from}");
        text = text.replace(from, to);
    }
    text + added
}

/// A sound scenario, one line per key; the cases below change lines of it or add to it.
pub const SOUND: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 4
[transport]
kind = "tcp"
rto_min = "10ms"
delayed_ack_timeout = "1ms"
[[traffic]]
kind = "incast"
receiver = "h3"
size = "10KB"
"#;

/// A folder with the files that some cases read.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

pub fn errors(text: &str) -> String {
    match Scenario::from_toml(text, &folder()) {
        Ok(_) => "sound".to_string(),
        Err(problems) => render(&problems, "s.toml"),
    }
}

/// The sound scenario with lines changed and lines added.
pub fn wrong(changes: &[(&str, &str)], added: &str) -> String {
    errors(&edited(SOUND, changes, added))
}

pub fn lines(expected: &[&str]) -> String {
    expected.iter().map(|line| format!("s.toml: {line}\n")).collect()
}
