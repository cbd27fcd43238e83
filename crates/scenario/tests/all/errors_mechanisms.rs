//! Wrong mechanisms, and the words that they are refused with.

use crate::common::wrong;

#[test]
fn drop_notifications_of_nodes_that_there_are_not() {
    let found = wrong(&[], "[switch]\nmechanisms.pdn = { unaware = [\"switch9\", \"x*\", \"h0\"], operation = \"halve\" }\n");
    for expected in
        ["switch.mechanisms.pdn.operation, line", "\"halve\" is not a known name; accepted: retransmit_and_halve, retransmit"]
    {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let found = wrong(&[], "[switch]\nmechanisms.pdn = { unaware = [\"switch9\", \"x*\", \"h0\"] }\n");
    for expected in [
        "switch.mechanisms.pdn.unaware[0], line 14: \"switch9\" is no switch and no host",
        "switch.mechanisms.pdn.unaware[1], line 14: \"x*\" matches no switch and no host",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    for loss in ["-0.01", "1.01"] {
        let found = wrong(&[], &format!("[switch]\nmechanisms.pdn = {{ loss = {loss} }}\n"));
        let expected = format!("switch.mechanisms.pdn.loss, line 14: {loss}");
        assert!(found.contains(&expected) && found.contains("from 0 to 1"), "{found}");
    }
    let found = wrong(&[], "[switch]\nmechanisms.pdn = { unaware = [\"switch*\"] }\n");
    assert!(found.contains("names every switch: nobody sends notifications"), "{found}");
    let found = wrong(&[("kind = \"tcp\"", "kind = \"tcp\"\ndrop_notification = true\nmss = 1460\ntimestamps = false")], "");
    assert!(found.contains("at most 1440: the MTU of 1500 less 60B of headers and drop notification"), "{found}");
    let found = wrong(&[("kind = \"tcp\"", "kind = \"tcp\"\ndrop_resend = \"window\"")], "");
    assert!(found.contains("\"window\" has no effect while drop_notification and trim_nack are off"), "{found}");
}

#[test]
fn trimming_of_hosts_and_without_room() {
    let trimming = |more: &str| format!("[switch]\nmechanisms.trimming = {{ {} }}\n", more.trim_start_matches(", "));
    let found = wrong(&[], &trimming(", unaware = [\"switch9\", \"h0\", \"h*\"], ratio = 0, cut = \"head\", headers = \"100B\""));
    for expected in [
        "switch.mechanisms.trimming.ratio, line 14: 0 is out of range",
        "\"head\" is not a known name; accepted: arriving, either",
        "switch.mechanisms.trimming.headers, line 14: \"100B\" is out of range",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let found = wrong(&[], &trimming(", unaware = [\"switch9\", \"h0\", \"h*\"]"));
    for expected in [
        "switch.mechanisms.trimming.unaware[0], line 14: \"switch9\" is no switch; accepted",
        "switch.mechanisms.trimming.unaware[1], line 14: \"h0\" is no switch; accepted",
        "switch.mechanisms.trimming.unaware[2], line 14: \"h*\" matches no switch; accepted",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let found = wrong(&[], &trimming(", unaware = [\"*\"]"));
    assert!(
        found.contains("names every switch: nobody trims; accepted: at least one switch that is not in it, or no trimming"),
        "{found}"
    );
    let found = wrong(&[], &format!("{}[framing]\nheader = \"200B\"\n", trimming(", headers = \"128B\"")));
    assert!(
        found.contains(
            "switch.mechanisms.trimming.headers, line 14: \"128B\" has no room for a single header; accepted: at least 252B"
        ),
        "{found}"
    );
}

#[test]
fn bounces_without_a_range_and_a_second_header() {
    for range in ["lower = \"9 packets\", upper = \"9 packets\"", "lower = \"9 packets\", upper = \"20KB\""] {
        let found = wrong(&[], &format!("[switch]\nmechanisms.pabo = {{ {range} }}\n"));
        assert!(found.contains("switch.mechanisms.pabo.upper, line 14: \""), "{found}");
        assert!(found.contains("is no queue above lower; accepted: more than lower, 9 packets, in the same unit"), "{found}");
    }
    let found = wrong(&[], "[switch]\nmechanisms.rimm = {}\nmechanisms.pabo = {}\n");
    let expected = "puts headers into frames, as rimm does, and a frame has one at most; accepted: either rimm or pabo";
    assert!(found.contains("switch.mechanisms.pabo") && found.contains(expected), "{found}");
    // At other switches too: what one puts into a frame the other would take for none.
    let fabric = "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[switch.mechanisms.vertigo]\n\
                  [[switch.except]]\ntier = 1\nmechanisms.pabo = {}\n\
                  [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"10KB\"\n";
    let found = fanin_scenario::Scenario::from_toml(fabric, std::path::Path::new(".")).expect_err("two headers");
    let found = fanin_scenario::render(&found, "s.toml");
    let expected = "puts headers into frames, as vertigo does at other switches, and a frame can hold only one; accepted: vertigo or pabo at all switches";
    assert!(found.contains("switch.except[0].mechanisms.pabo") && found.contains(expected), "{found}");
}

/// The headroom of PFC counts the headers of others.
#[test]
fn frames_of_lossless_classes_are_longer_by_the_headers_of_mechanisms() {
    let with = |other: &str, pfc: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
             [switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = {{ memory = \"20MB\"{pfc} }}\n{other}\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"10KB\"\n"
        );
        let problems = fanin_scenario::Scenario::from_toml(&text, std::path::Path::new(".")).err().unwrap_or_default();
        fanin_scenario::render(&problems, "s.toml")
    };
    for (other, bytes) in [("rimm", 1526), ("pabo", 1522), ("vertigo", 1526)] {
        let other = format!("mechanisms.{other} = {{}}");
        let found = with(&other, "");
        let expected = format!("is less than the largest frame of the traffic, {bytes} B: the headroom is too small by as much");
        assert!(found.contains("switch.mechanisms.pfc.max_frame") && found.contains(&expected), "{other}: {found}");
        assert_eq!(with(&other, &format!(", max_frame = \"{bytes}B\"")), "");
        assert_eq!(with(&other, ", headroom = \"100KB\""), "", "an amount of the user's own");
    }
    assert_eq!(with("mechanisms.dibs = {}", ""), "");
}
