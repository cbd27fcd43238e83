//! The checked-in page of counters is what their definitions say.
//!
//! `FANIN_WRITE=1 cargo test -p fanin-sim --test generated` writes it anew.

use std::path::Path;

#[test]
fn the_page_of_counters_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/counters.md");
    let wanted = fanin_sim::counters_page();
    if std::env::var_os("FANIN_WRITE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == wanted, "docs/counters.md is old: FANIN_WRITE=1 cargo test -p fanin-sim --test generated");
}
