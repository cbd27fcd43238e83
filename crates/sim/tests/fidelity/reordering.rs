//! Order of arrival as receivers count it, against the definitions of RFC 4737 on the trace of every packet.

use super::common::{property, run, Ran};
use super::random::{classes, fifo, Random};
use fanin_scenario::Scenario;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Of each flow: its data packets in order of arrival, each with its time at the host \[ps\], its place among those sent, and its time at
/// the transport \[ps\].
fn arrivals(ran: &Ran) -> BTreeMap<u32, Vec<(u64, u64, u64)>> {
    let sender: BTreeMap<u32, String> = ran.kept.flows.iter().map(|f| (f.flow, f.src.to_string())).collect();
    let reached: BTreeMap<u64, u64> = ran.kept.hops.iter().map(|hop| (hop.packet, hop.reached_ps)).collect();
    let mut sent: BTreeMap<u32, u64> = BTreeMap::new();
    let mut found: BTreeMap<u32, Vec<(u64, u64, u64)>> = BTreeMap::new();
    let mut data: Vec<_> =
        ran.kept.segments.iter().filter(|s| s.payload_bytes > 0 && s.host.to_string() == sender[&s.flow]).collect();
    data.sort_unstable_by_key(|s| s.packet);
    for s in data {
        let number = sent.entry(s.flow).or_default();
        if let Some(received) = s.received_ps.filter(|_| !s.trimmed) {
            found.entry(s.flow).or_default().push((reached[&s.packet], *number, received));
        }
        *number += 1;
    }
    found.values_mut().for_each(|list| list.sort_unstable());
    found
}

/// Reordered packets, 3-reordered packets, largest extent, longest late time: RFC 4737 §3.3, §5, §4.2, §4.3, word for word.
fn defined(arrivals: &[(u64, u64, u64)]) -> (u64, u64, u32, u64) {
    let (mut reordered, mut three, mut extent, mut late) = (0, 0, 0, 0);
    for (i, (_, number, received)) in arrivals.iter().enumerate() {
        if let Some(first) = arrivals[..i].iter().position(|(_, earlier, _)| earlier > number) {
            reordered += 1;
            three += u64::from(i >= 3 && arrivals[i - 3..i].iter().all(|(_, earlier, _)| earlier > number));
            extent = extent.max((i - first) as u32);
            late = late.max(received - arrivals[first].2);
        }
    }
    (reordered, three, extent, late)
}

fn as_defined(random: &Random) -> Result<(), TestCaseError> {
    let text = format!("{}[telemetry]\nsample = \"off\"\nhosts = [\"*\"]\n", random.text);
    prop_assume!(Scenario::from_toml(&text, Path::new(".")).is_ok()); // not a combination without effect
    let ran = run(&text);
    let arrivals = arrivals(&ran);
    // Those that come when their receiver has left its host are counted by nobody: the last ones of a flow.
    let mut stray = ran.totals.stray as usize;
    for row in &ran.kept.flows {
        let seen = (row.reordered, row.reordered_3, row.reordering_extent, row.reordering_late_ps);
        let list = arrivals.get(&row.flow).map_or(&[][..], Vec::as_slice);
        // None of those that came before the last acknowledgment.
        let acked = row.acked_ps.unwrap_or(u64::MAX);
        let after = list.iter().rev().take_while(|(.., received)| *received > acked).count();
        let late = (0..=stray.min(after)).find(|late| defined(&list[..list.len() - late]) == seen);
        prop_assert!(late.is_some(), "flow {}: {:?}, not {:?}; {} stray\n{}", row.flow, seen, defined(list), stray, text);
        stray -= late.unwrap_or(0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(property(60, 20_27))]

    #[test]
    fn order_is_counted_as_defined_at_fifo_ports(random in fifo()) {
        as_defined(&random)?;
    }

    #[test]
    fn order_is_counted_as_defined_with_classes_and_at_hosts_that_wait(random in classes(), poll in any::<bool>()) {
        let poll = if poll { "receive = \"napi\"\n" } else { "" };
        as_defined(&Random { text: random.text.replace("[host]\n", &format!("[host]\n{poll}")) })?;
    }
}

/// Flows that keep to a path stay in order, however many packets are dropped; sprayed over paths with other traffic they do not.
#[test]
fn paths_of_a_flow_decide_about_its_order() {
    let fabric = |routing: &str| {
        run(&format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 8\nspines = 4\n\
             host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nrouting = {routing}\nbuffer = {{ kind = \"static\", per_port = \"40 packets\" }}\n\
             [transport]\nkind = \"tcp\"\nprofile = \"linux\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"100KB\"\n"
        ))
    };
    let sums = |ran: &Ran| {
        let sum = |of: fn(&fanin_telemetry::FlowRow) -> u64| ran.kept.flows.iter().map(of).sum::<u64>();
        (sum(|f| f.reordered), sum(|f| f.retransmits))
    };
    let (ecmp, spray) = (sums(&fabric("\"ecmp\"")), sums(&fabric("\"spray\"")));
    println!("reordered, retransmitted: ECMP {ecmp:?}, spraying {spray:?}");
    assert!(ecmp.0 == 0 && ecmp.1 > 100);
    assert!(spray.0 > 100);
}
