//! What `fanin check` says of RoCEv2: timeouts, order, congestion controls far from what they were made for, classes of answers.

use fanin_scenario::{render, Scenario};
use std::path::Path;

/// Two racks of 100 Gb/s and 1 us a link, two paths between them, lossless.
fn fabric(switch: &str, transport: &str) -> String {
    format!(
        "duration = \"1ms\"\n[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = \"unlimited\"\n{switch}\n[switch.mechanisms.pfc]\nclasses = [0]\nmemory = \"12MB\"\n\
         [transport]\nkind = \"roce\"\n{transport}\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h3\", size = \"1MB\" }}]\n"
    )
}

fn said_of(text: &str) -> String {
    match Scenario::from_toml(text, Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s"),
        Err(problems) => render(&problems, "s"),
    }
}

fn said(switch: &str, transport: &str) -> String {
    said_of(&fabric(switch, transport))
}

#[test]
fn nothing_is_said_of_a_sound_one() {
    assert_eq!(said("", ""), "");
}

/// Source: go-back-N takes each packet that comes early for one behind a loss. IBTA §9.7.5.1.
#[test]
fn several_paths_for_the_packets_of_a_flow_under_go_back_n() {
    for routing in ["spray", "round_robin", "drill"] {
        let found = said(&format!("routing = \"{routing}\""), "");
        let expected = "retransmits packets that arrive out of order, and switch.routing sends packets of a flow over several paths; recovery = \"selective_repeat\"";
        assert!(found.contains(expected), "{routing}: {found}");
        let patient = "recovery = { kind = \"selective_repeat\", rto_low = \"720us\", rto_high = \"720us\" }";
        assert_eq!(said(&format!("routing = \"{routing}\""), patient), "", "{routing}");
    }
    assert_eq!(said("routing = \"by_destination\"", ""), "");
    let sorted = fabric("routing = \"spray\"", "") + "[host]\nreorder = {}\n";
    assert!(!said_of(&sorted).contains("out of order"), "{}", said_of(&sorted));
}

/// Four links of 1 us there and back, a full packet on each and an acknowledgment: 8.4 us.
#[test]
fn timeouts_below_the_round_trip() {
    let found = said("", "recovery = { kind = \"go_back_n\", ack_timeout = 1 }");
    assert!(
        found.contains("recovery.ack_timeout, line 17: 1 means 8200ns, no more than the RTT of an idle network, 8400ns"),
        "{found}"
    );
    assert!(found.contains("packets that were not lost are retransmitted; 2 or more"), "{found}");
    let two = said("", "recovery = { kind = \"go_back_n\", ack_timeout = 2 }");
    assert!(!two.contains("RTT of an idle network") && two.contains("recovery.ack_timeout = 8 at transport default"), "{two}");
    let repeat = |low: &str| said("", &format!("recovery = {{ kind = \"selective_repeat\", rto_low = \"{low}\" }}"));
    assert!(
        repeat("8us").contains("rto_low, line 17: \"8us\" is no more than the RTT of an idle network, 8400ns"),
        "{}",
        repeat("8us")
    );
    assert!(!repeat("9us").contains("RTT of an idle network"), "{}", repeat("9us"));
}

/// w = beta / (1 - eta) on an idle path: 1 / (167 · 0.05) of the line.
#[test]
fn a_window_of_theta_powertcp_that_rests_far_below_the_line() {
    let theta = |keys: &str| said("", &format!("congestion_control = {{ kind = \"theta_powertcp\"{keys} }}"));
    assert!(
        theta("").contains("flows, line 17: 167 is too many for eta = 0.95: n flows of a link use n · 12 % of it"),
        "{}",
        theta("")
    );
    assert!(theta(", eta = 0.75").contains("n · 2 % of it"), "{}", theta(", eta = 0.75"));
    assert!(theta(", eta = 0.75").contains("flows = 4 or less"), "{}", theta(", eta = 0.75"));
    assert_eq!(theta(", eta = 0.75, flows = 4"), "");
    assert_eq!(theta(", eta = 1.0"), "");
}

/// 16 KiB · 8 b / 10 Mb/s · ln 2 = 9.1 ms.
#[test]
fn timely_far_from_the_network_of_its_paper() {
    let timely = |keys: &str| said("", &format!("congestion_control = {{ kind = \"timely\"{keys} }}"));
    let found = timely("");
    assert!(
        found.contains("delta, line 17: \"10Mbps\" is small compared with 100Gbps: a rate that has fallen doubles in 9.1 ms"),
        "{found}"
    );
    assert!(
        found.contains("delta = \"100Mbps\"") && found.contains("t_low, line 17: \"50us\" is far above the base RTT"),
        "{found}"
    );
    let suited = ", delta = \"100Mbps\", t_low = \"20us\", t_high = \"200us\"";
    assert_eq!(timely(suited), "");
    assert!(
        timely(&suited.replace("100M", "24M")).contains("delta") && !timely(&suited.replace("100M", "25M")).contains("delta")
    );
}

#[test]
fn marks_that_no_queue_pair_heeds() {
    let found = said("marking = { kind = \"threshold\", k = \"65 packets\" }", "");
    let remedy = "set switch.marking = \"none\", or a congestion_control that works by marks, such as \"dcqcn\"\n";
    assert!(found.contains("no transport in use sends any") && found.ends_with(remedy), "{found}");
    assert!(!found.contains("dctcp"), "{found}");
}

#[test]
fn acknowledgments_in_a_class_that_may_drop() {
    let classes = "scheduling = { kind = \"strict\", classes = 3 }";
    let found = said(classes, "ack_class = 2");
    assert!(found.contains("ack_class, line 17: 2 is a class that may drop packets, while the data's class may not"), "{found}");
    let both = fabric(classes, "ack_class = 2").replace("classes = [0]", "classes = [0, 2]");
    assert_eq!(said_of(&both), "");
}

/// A combined switch with PFC drops nothing: no first round is lost, and no timeout waited for.
#[test]
fn losses_are_not_announced_where_nothing_is_dropped() {
    let incast = |pfc: &str| {
        said_of(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"100Gbps\", delay = \"500ns\" }}\n\
             [switch]\narchitecture = {{ kind = \"combined\", voq = \"12MB\" }}\n{pfc}\
             [transport]\nkind = \"roce\"\n[telemetry]\nsample = \"1us\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h3\"\nsize = \"2MB\"\n"
        ))
    };
    let xoff = "xoff = { kind = \"static\", bytes = \"100KB\" }";
    assert_eq!(incast(&format!("[switch.mechanisms.pfc]\nclasses = [0]\nmemory = \"12MB\"\n{xoff}\n")), "");
    assert!(incast("").contains("each lost end of a message costs that much"), "{}", incast(""));
}

#[test]
fn keys_of_drivers_are_understood() {
    let found = said("", "congestion_control = { kind = \"dcqcn\", rpg_ai_rate = \"5Mbps\" }");
    assert!(found.contains("did you mean 'additive_increase'?"), "{found}");
}
