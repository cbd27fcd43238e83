//! A sound text, and what a case changes of it.

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
