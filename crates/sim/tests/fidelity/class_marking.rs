//! Marking by class: each queue by its own length, whatever waits in the others.

use crate::common::*;
use std::collections::BTreeMap;

/// Six hosts send to a seventh over queues of their classes; `marking`: settings of switches.
fn ran(marking: &str, ports: &str) -> Ran {
    let entry = |class: u8, hosts: &str, transport: &str, size: &str| {
        format!("[[traffic]]\nkind = \"incast\"\nname = \"c{class}\"\nreceiver = \"h6\"\nsenders = [\"{hosts}\"]\nsize = \"{size}\"\nclass = {class}\ntransport = \"{transport}\"\njitter = \"3us\"\n")
    };
    run(&format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 7\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[engine]\nports = \"{ports}\"\n\
         [switch]\nbuffer = \"unlimited\"\nscheduling = {{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"600B\"] }}\n{marking}\n\
         [transports.web]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\n[transports.rdma]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n\
         [telemetry]\nsample = \"off\"\nqueues = [\"switch0->h6\"]\nhosts = [\"*\"]\n{}{}{}",
        entry(0, "h0..h1", "rdma", "400KB"),
        entry(1, "h2..h3", "web", "600KB"),
        entry(2, "h4..h5", "web", "300KB"),
    ))
}

/// Of each arrival at the port, by time and flow: its class, the bytes and packets of that class that waited, and of all.
fn found(ran: &Ran) -> BTreeMap<(u64, u32), (u8, [u64; 2], u64)> {
    let classes: BTreeMap<u32, u8> = ran.kept.flows.iter().map(|flow| (flow.flow, flow.class)).collect();
    let frames: BTreeMap<u64, u64> = ran.kept.segments.iter().map(|s| (s.packet, u64::from(s.frame_bytes))).collect();
    let hops: Vec<_> = ran.kept.hops.iter().filter(|hop| hop.port.to_string() == "switch0->h6").collect();
    let waiting = |at: u64, class: Option<u8>| {
        let of =
            hops.iter().filter(|hop| hop.arrived_ps < at && hop.sent_ps > at && class.is_none_or(|c| classes[&hop.flow] == c));
        of.fold([0, 0], |[bytes, packets], hop| [bytes + frames[&hop.packet], packets + 1])
    };
    let one = |hop: &&fanin_telemetry::HopRow| {
        let class = classes[&hop.flow];
        ((hop.arrived_ps, hop.flow), (class, waiting(hop.arrived_ps, Some(class)), waiting(hop.arrived_ps, None)[0]))
    };
    hops.iter().map(one).collect()
}

/// Each class by its own threshold, held to what a recomputation from arrivals and departures finds in its queue alone.
#[test]
fn each_class_is_marked_by_its_own_queue() {
    let marking = "marking = { kind = \"threshold\", k = \"9 packets\" }\n\
                   class_marking = [{ classes = [0], marking = { kind = \"threshold\", k = \"20KB\" } }, { classes = [1], marking = \"none\" }]";
    let ran = ran(marking, "auto");
    let found = found(&ran);
    let (mut marks, mut beyond) = ([0; 3], 0);
    let times: Vec<u64> = ran.kept.queues.iter().map(|row| row.time_ps).collect();
    // Which of two that come in the same picosecond is first, hops do not say.
    let alone = |row: &&fanin_telemetry::QueueRow| times.iter().filter(|time| **time == row.time_ps).count() == 1;
    for row in ran.kept.queues.iter().filter(alone) {
        let (class, [bytes, packets], all) = found[&(row.time_ps, row.flow)];
        let expected = [bytes > 20_000, false, packets > 9][usize::from(class)];
        assert!(row.marked == expected, "class {class}: {bytes} B, {packets} packets of {all} B: {row:?}");
        assert_eq!(row.queue_bytes, all, "rows say what the port holds");
        marks[usize::from(class)] += u32::from(row.marked);
        beyond += u32::from(class == 0 && !row.marked && all > 20_000);
    }
    println!("marks by class {marks:?}; {beyond} packets of class 0 found the port above its threshold, and its own queue below");
    assert!(marks[0] > 20 && marks[1] == 0 && marks[2] > 20 && beyond > 20);
}

/// What other classes are marked by changes nothing for a class that is served first: without entries it is marked for their queues.
#[test]
fn classes_are_isolated() {
    let ran = |marking: &str, k: &str| {
        run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 6\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = \"unlimited\"\nscheduling = {{ kind = \"strict\", classes = 2 }}\n{}\n\
             [transports.web]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\n[transports.rdma]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n\
             [telemetry]\nsample = \"off\"\nhosts = [\"h0\"]\n\
             [[traffic]]\nkind = \"flows\"\ntransport = \"rdma\"\nflows = [{{ src = \"h0\", dst = \"h5\", size = \"1MB\", start = \"200us\" }}]\n\
             [[traffic]]\nkind = \"incast\"\nname = \"web\"\ntransport = \"web\"\nclass = 1\nreceiver = \"h5\"\nsenders = [\"h1..h4\"]\nsize = \"2MB\"\n",
            marking.replace("\"K\"", &format!("\"{k}\""))
        ))
    };
    let one = |ran: &Ran| {
        let flow = ran.kept.flows.iter().find(|flow| flow.class == 0).expect("a flow");
        let marked = ran.kept.segments.iter().filter(|s| s.flow == flow.flow && s.marked).count();
        (flow.finish_ps.expect("complete") - flow.start_ps, marked, flow.ideal_ps)
    };
    let whole = "marking = { kind = \"threshold\", k = \"K\" }";
    let apart = "marking = { kind = \"threshold\", k = \"K\" }\nclass_marking = [{ classes = [0], marking = { kind = \"threshold\", k = \"20KB\" } }]";
    let [(slow, marked, ideal), (fast, none, _)] = [whole, apart].map(|marking| one(&ran(marking, "20KB")));
    println!("by the port: {marked} packets marked, {slow} ps; by class: {none} marked, {fast} ps of {ideal}");
    assert!(marked > 50 && none == 0 && slow > 2 * fast);
    // The packet on the wire ends first, and acknowledgments of others wait at the NIC.
    assert!(fast < ideal + 20_000_000, "{fast} {ideal}");
    assert_eq!(one(&ran(apart, "50KB")), one(&ran(apart, "200KB")));
}

/// Where a port has packets of one class only, its own settings and those of the port say the same: bit for bit, at both kinds of ports.
#[test]
fn alone_a_class_is_marked_as_the_port_would_be() {
    let ran = |marking: &str, ports: &str| {
        run(&format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [engine]\nports = \"{ports}\"\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"60 packets\" }}\nscheduling = {{ kind = \"strict\", classes = 3 }}\n{marking}\n\
             [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\n[telemetry]\nsample = \"off\"\nqueues = [\"*\"]\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsize = \"150KB\"\nclass = 1\n[[traffic]]\nkind = \"permutation\"\nsize = \"80KB\"\nclass = 1\n"
        ))
    };
    for marking in [
        "{ kind = \"threshold\", k = \"9 packets\" }",
        "{ kind = \"threshold\", k = \"12KB\", at = \"dequeue\" }",
        "{ kind = \"red\", min = \"4 packets\", max = \"20 packets\", weight = 0.1 }",
        "{ kind = \"s_ecn\", k = \"30 packets\" }",
        "{ kind = \"codel\", target = \"5us\", interval = \"50us\", ecn = true }",
        "{ kind = \"front_drop\", limit = \"20 packets\" }",
    ] {
        let port = ran(&format!("marking = {marking}"), "auto");
        let class = format!("class_marking = [{{ classes = [1, 2], marking = {marking} }}]");
        for ports in ["auto", "explicit"] {
            let by_class = ran(&class, ports);
            assert_eq!((&by_class.kept, by_class.outcome()), (&port.kept, port.outcome()), "{marking} {ports}");
        }
        let others = ran(&format!("marking = {marking}\nclass_marking = [{{ classes = [0], marking = {{ kind = \"threshold\", k = \"1 packets\" }} }}]"), "auto");
        assert_eq!(others.outcome(), port.outcome(), "{marking}: classes without an entry");
    }
}
