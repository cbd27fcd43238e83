//! Wrong traffic is refused: where, what, and what would be accepted, all at once.

use crate::common::{assert_problem, net};
use fanin_params::{Param, Schema};
use fanin_traffic::{Entry, TrafficKind};

fn problems(text: &str) -> Vec<String> {
    net(2, 4).until_ms(10).problems(&format!("[[traffic]]\n{text}"))
}

#[test]
fn hosts_that_do_not_exist_are_named_with_the_nearest() {
    let found =
        problems("kind = \"incast\"\nreceiver = \"h77\"\nsenders = [\"rack:9\", \"h1..h99\", \"h5..h2\"]\nsize = \"1KB\"");
    assert_problem(
        &found,
        "traffic[0].receiver: \"h77\" is not a known host; accepted: h0, h1, h2, h3, … h7 (8 hosts); did you mean 'h7'?",
    );
    assert_problem(&found, "traffic[0].senders[0]: \"rack:9\" is a rack that does not exist; accepted: rack:0 to rack:1");
    assert_problem(&found, "traffic[0].senders[1]: \"h99\" is not a known host");
    assert_problem(&found, "traffic[0].senders[2]: \"h5..h2\" runs backwards");
    assert_problem(
        &problems("kind = \"permutation\"\nsize = \"1B\"\nhosts = [\"h1\", \"!all\"]"),
        "traffic[0].hosts: [\"h1\", \"!all\"] names no host",
    );
    assert_problem(
        &problems("kind = \"permutation\"\nsize = \"1B\"\nhosts = [\"h1\"]"),
        "traffic[0].hosts: [\"h1\"] is only one host; accepted: at least 2 hosts",
    );
    assert_problem(
        &problems("kind = \"incast\"\nreceiver = \"h1\"\nsenders = [\"h1\"]\nsize = \"1B\""),
        "traffic[0].senders: [\"h1\"] has no host but the receiver",
    );
}

/// Everything wrong with a job is said at once: its ranks, and each operation.
#[test]
fn jobs_that_no_ranks_can_do_are_refused() {
    let job = |rest: &str| problems(&format!("kind = \"collective\"\n{rest}"));
    let one = "operations = [{ kind = \"all_reduce\", size = \"1MB\" }]";
    let found = job("ranks = [\"h0..h3\", \"h9\", \"h2\"]\noperations = [{ kind = \"all_reduce\", size = \"3B\", group = 4 }, \
         { kind = \"all_to_all\", size = \"1MB\", staggered = true, concurrent = 2 }]");
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_problem(&found, "traffic[0].ranks[1]: \"h9\" is not a known host");
    assert_problem(&found, "traffic[0].operations[0].size: 3B is less than a byte for each of 4 parts; accepted: at least 4B");
    assert_problem(
        &found,
        "traffic[0].operations[1].concurrent: 2 has no effect with `staggered`: one step after the other; accepted: either `staggered` or",
    );
    let found = job(&format!("ranks = [\"h0..h3\", \"h1..h2\", \"h5\", \"h5\"]\n{one}"));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_problem(
        &found,
        "traffic[0].ranks[1]: \"h1..h2\" names h1 and 1 more again: a host is one rank of a job; accepted: each host once",
    );
    assert_problem(&found, "traffic[0].ranks[3]: \"h5\" names h5 again");
    assert_problem(
        &job(&format!("ranks = [\"h1\"]\n{one}")),
        "traffic[0].ranks: [\"h1\"] is only one host; accepted: at least 2 hosts",
    );
    assert_problem(&job("operations = []"), "traffic[0].operations: is empty; accepted: at least one operation");
    let operation = |rest: &str| job(&format!("operations = [{{ kind = \"all_reduce\", size = \"1MB\", {rest} }}]"));
    assert_problem(
        &operation("group = 3"),
        "traffic[0].operations[0].group: 3 ranks, 1 apart, do not divide 8 ranks into groups: they would overlap, or leave ranks out; \
         accepted: `group` times `stride` a divisor of 8",
    );
    assert_problem(&operation("group = 4, stride = 4"), "operations[0].group: 4 ranks, 4 apart, do not divide 8 ranks");
    assert_problem(&operation("group = 9"), "operations[0].group: 9 is more than the 8 ranks; accepted: 2 to 8");
    assert_problem(&operation("group = 1"), "operations[0].group: 1 is out of range; accepted: at least 2");
    assert_problem(&operation("stride = 2"), "operations[0].stride: 2 has no effect without `group`: all ranks are one group");
    assert_problem(
        &operation("message = \"125KB\""),
        "operations[0].message: 125KB has no effect: a rank sends at most 125KB in a step; accepted: less than that, or absent",
    );
    assert_problem(
        &job("operations = [{ kind = \"all_to_all\", size = \"1MB\", concurrent = 7 }]"),
        "operations[0].concurrent: 7 has no effect: a rank has 7 peers; accepted: fewer than that, or absent: all at once",
    );
    assert_problem(
        &job("iterations = 10000000\noperations = [{ kind = \"all_gather\", size = \"1000TB\" }]"),
        "traffic[0].iterations: 10000000 make connections of",
    );
    assert_problem(
        &job("iterations = 1000000\noperations = [{ kind = \"all_gather\", size = \"1KB\", compute = \"10s\" }]"),
        "traffic[0].operations: spreads the starts over",
    );
}

#[test]
fn ends_sizes_and_rates_that_make_no_sense_are_refused() {
    let found = problems(
        "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h0\", size = \"1B\" }, { src = \"h0\", dst = \"h1\", size = \"0B\" }, { src = \"h0\", dst = \"h1\", size = \"1B\", start = \"-1us\" }]",
    );
    assert_problem(&found, "traffic[0].flows[1].size: \"0B\" is out of range; accepted: at least 1B");
    assert_problem(&found, "traffic[0].flows[2].start: \"-1us\"");
    let found = problems("kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h0\", size = \"1B\" }, { src = \"h0\", dst = \"h1\", size = \"1B\", delay = \"1us\" }]");
    assert_problem(&found, "traffic[0].flows[0].dst: \"h0\" is the source itself; accepted: another host");
    assert_problem(&found, "traffic[0].flows[1].delay: 1us has no effect without `after`");
    assert_problem(&problems("kind = \"flows\"\nflows = []"), "traffic[0].flows: is empty");
    assert_problem(
        &problems("kind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"0bps\""),
        "traffic[0].rate: \"0bps\" is out of range; accepted: at least 1bps",
    );
    assert_problem(
        &problems("kind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\ntransport = \"cubic\""),
        "traffic[0].transport: \"cubic\" has no effect: datagrams use no transport",
    );
    assert_problem(
        &problems("kind = \"permutation\"\nsize = \"1B\"\nclass = 8"),
        "traffic[0].class: 8 is out of range; accepted: from 0 to 7",
    );
}

#[test]
fn either_or_parameters_are_checked() {
    let incast = "kind = \"incast\"\nreceiver = \"h0\"\n";
    assert_problem(&problems(incast), "traffic[0].size: is missing; accepted: either `size` (of each flow) or `total`");
    assert_problem(
        &problems(&format!("{incast}size = \"1B\"\ntotal = \"1MB\"")),
        "traffic[0].total: 1MB cannot be given together with `size`",
    );
    assert_problem(
        &problems(&format!("{incast}total = \"3B\"")),
        "traffic[0].total: 3B is less than a byte for each of 7 flows; accepted: at least 7B",
    );
    assert_problem(
        &problems(&format!("{incast}size = \"1B\"\nrepetitions = 2")),
        "traffic[0].interval: is missing for 2 rounds; accepted: either `interval` or `gap`",
    );
    assert_problem(&problems(&format!("{incast}size = \"1B\"\ngap = \"1us\"")), "traffic[0].gap: has no effect with one round");
    assert_problem(
        &problems(&format!("{incast}size = \"1B\"\ncount = 8")),
        "traffic[0].count: 8 is more than there are senders; accepted: at most 7",
    );
    let poisson = "kind = \"poisson\"\nsizes = \"storage\"\n";
    assert_problem(&problems(poisson), "traffic[0].load: is missing; accepted: either `load` or `per_second`");
    assert_problem(
        &problems(&format!("{poisson}load = 0.5\nper_second = 1.0")),
        "traffic[0].load: 0.5 cannot be given together with `per_second`",
    );
    assert_problem(&problems(&format!("{poisson}load = 0.0")), "traffic[0].load: 0 offers nothing; accepted: above 0");
    assert_problem(
        &problems(&format!("{poisson}load = 0.1\nstart = \"2ms\"\nstop = \"1ms\"")),
        "traffic[0].stop: 1ms is not after the entry's `start`; accepted: after 2ms",
    );
    assert_problem(&problems(&format!("{poisson}load = -0.1")), "traffic[0].load: -0.1 is");
    assert_problem(
        &problems(&format!("{poisson}per_second = 5.0\nload_of = \"core\"")),
        "traffic[0].load_of: \"core\" has no effect with `per_second`",
    );
    assert_problem(
        &problems(&format!("{poisson}load = 0.5\nsources = [\"h0\"]\ndestinations = [\"h0\"]")),
        "traffic[0].destinations: \"h0\" as a source has no destination other than itself",
    );
    assert_problem(
        &problems(&format!("{poisson}load = 0.5\nintra_rack = 0.5\ndestinations = [\"rack:0\"]")),
        "as a source has no destination outside its rack",
    );
    assert_problem(
        &problems("kind = \"query\"\nper_second = 1.0\nsize = \"1B\"\nfanout = 8"),
        "traffic[0].fanout: 8 is too much for the client \"h0\", which has 7 responders",
    );
    assert_problem(
        &problems("kind = \"hot_spot\"\nload = 0.5\nsizes = \"storage\"\nhot = [\"h1\"]\nhot_hosts = 0.5"),
        "traffic[0].hot_hosts: 0.5 has no effect when `hot` lists the hosts",
    );
}

#[test]
fn core_load_needs_a_core() {
    let text = "[[traffic]]\nkind = \"poisson\"\nsizes = \"storage\"\nload = 0.5\nload_of = \"core\"\n";
    assert_problem(
        &net(1, 4).until_ms(1).problems(text),
        "traffic[0].load_of: \"core\" has no meaning here: no links leave the racks; accepted: \"host_links\"",
    );
    assert_problem(&net(2, 4).until_ms(1).problems(&format!("{text}intra_rack = 1.0")), "no flow of this entry leaves its rack");
}

#[test]
fn traffic_that_would_never_end_is_refused() {
    for text in [
        "kind = \"poisson\"\nsizes = \"storage\"\nload = 0.5",
        "kind = \"query\"\nsize = \"1B\"\nper_second = 5.0",
        "kind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"",
    ] {
        let found = net(2, 4).problems(&format!("[[traffic]]\n{text}"));
        assert_problem(&found, "traffic[0].stop: is missing: the run has no duration, so th");
    }
}

#[test]
fn a_thousand_million_flows_are_refused_before_they_are_made() {
    let found = problems("kind = \"poisson\"\nper_second = 1e11\nsizes = \"storage\"");
    assert_problem(&found, "traffic[0].per_second: 1000000000 flows exceed the limit; accepted: at most 50000000 in a run; ask for fewer flows, a shorter run or a lower load");
    assert_problem(&problems("kind = \"incast\"\nreceiver = \"h0\"\nsize = \"1B\"\nflows_per_sender = 1_000_000\nrepetitions = 1000\ninterval = \"1us\""), "flows exceed the limit");
    let mut wide = net(100, 100);
    assert_problem(
        &wide.problems("[[traffic]]\nkind = \"all_to_all\"\nsize = \"1B\""),
        "traffic[0].hosts: 99990000 flows exceed the limit",
    );
    wide.max_flows = 10;
    let entry = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = [\"h1..h6\"]\nsize = \"1B\"\n";
    assert_problem(&wide.problems(&entry.repeat(2)), "traffic: asks for 12 flows in all; accepted: at most 10 in a run");
}

#[test]
fn names_must_differ_and_exist() {
    let text = r#"
        kind = "flows"
        name = "a"
        flows = [{ id = "b", src = "h0", dst = "h1", size = "1B", after = ["c", "d", "d"] }, { id = "d", src = "h0", dst = "h1", size = "1B" }]
        [[traffic]]
        name = "b"
        kind = "permutation"
        size = "1B"
        delay = "1us"
        [[traffic]]
        name = "b"
        kind = "permutation"
        size = "1B"
        after = ["aa"]
        transport = "dctpc"
    "#;
    let found = problems(text);
    assert_problem(&found, "traffic[0].flows[0].id: \"b\" is also the name of another entry or flow; accepted: ids that differ");
    assert_problem(
        &found,
        "traffic[0].flows[0].after[0]: \"c\" is not a known flow id or entry name; accepted: d; did you mean 'd'?",
    );
    assert_problem(&found, "traffic[0].flows[0].after[2]: \"d\" is listed twice");
    assert_problem(&found, "traffic[1].delay: \"1us\" has no effect without `after`");
    assert_problem(&found, "traffic[2].name: \"b\" is also the name of another entry or flow; accepted: names that differ");
    assert_problem(
        &found,
        "traffic[2].after[0]: \"aa\" is not a known flow id or entry name; accepted: a, b, d; did you mean 'a'?",
    );
    assert_problem(
        &found,
        "traffic[2].transport: \"dctpc\" is not a known transport; accepted: dctcp, cubic; did you mean 'dctcp'?",
    );
}

#[test]
fn unknown_kinds_keys_and_workloads_are_suggested() {
    assert_problem(
        &problems("kind = \"poison\"\nload = 0.5"),
        "traffic[0]: \"poison\" is not a known kind; accepted: flows, incast, query, poisson",
    );
    assert_problem(
        &problems("kind = \"incast\"\nreciever = \"h0\"\nsize = \"1B\""),
        "traffic[0].reciever: \"reciever\" is not a known key",
    );
    assert_problem(&problems("kind = \"poisson\"\nload = 0.5\nsizes = \"websearch\""), "did you mean 'web-search'?");
}

#[test]
fn doubtful_traffic_is_warned_of() {
    let text = "[[traffic]]\nkind = \"poisson\"\nload = 1.2\nsizes = \"storage\"\n[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"40Gbps\"\nstart = \"10ms\"";
    let traffic = net(2, 4).until_ms(10).build(text);
    let warnings: Vec<String> = traffic.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "traffic[0].load: 1.2 is more than the network can carry: queues and completion times grow with the run",
            "traffic[1].rate: 40Gbps is more than the 10Gbps of the link of \"h0\"",
            "traffic[1].start: 10ms is not before the end of the run, 10ms",
        ]
    );
    let late = net(2, 4)
        .until_ms(1)
        .build("[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1B\", start = \"1ms\" }]");
    assert_eq!(
        late.warnings()[0].to_string(),
        "traffic[0].flows[0].start: 1ms is not before the end of the run: the flow never starts"
    );
}

#[test]
fn entries_are_written_as_they_are_read_and_every_parameter_is_documented() {
    let text = "[[traffic]]\nkind = \"query\"\nname = \"q\"\nload = 0.5\ntotal = \"100KB\"\naggregate = { size = \"1KB\" }";
    let entries = crate::common::parse(text).unwrap();
    let again = Entry::parse(&entries[0].to_value().into(), &mut fanin_params::Cx::new());
    assert_eq!(again.as_ref(), Some(&entries[0]));
    let Schema::Choice(choice) = Entry::schema() else { panic!("an entry is a choice of kinds") };
    assert_eq!(choice.variants.iter().map(|v| v.kind).collect::<Vec<_>>(), TrafficKind::KINDS);
    for variant in &choice.variants {
        let names: std::collections::BTreeSet<_> = variant.body.fields.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), variant.body.fields.len(), "{}: no key twice", variant.kind);
        assert!(!variant.doc.is_empty() && variant.body.fields.iter().all(|f| !f.doc.is_empty()), "{}", variant.kind);
    }
}

#[test]
fn times_beyond_what_is_simulated_are_refused() {
    let incast = "kind = \"incast\"\nreceiver = \"h0\"\nsize = \"1B\"\nrepetitions = 10_000\n";
    for (pace, key) in [("interval = \"100s\"", "interval"), ("gap = \"100s\"", "gap")] {
        let expected = format!("traffic[0].{key}: spreads the starts over 999900s; accepted: times that make at most 864000s");
        assert_problem(&problems(&format!("{incast}{pace}")), &expected);
    }
    assert_eq!(problems(&format!("{incast}interval = \"80s\"")), Vec::<String>::new());
    assert_problem(
        &problems("kind = \"all_to_all\"\nsize = \"1B\"\nstart = \"864001s\"\nstagger = \"864001s\""),
        "traffic[0].start: \"864001s\" is out of range; accepted: from 0ps to 864000s",
    );
    assert_problem(
        &problems("kind = \"all_to_all\"\nsize = \"1B\"\nstagger = \"864000s\""),
        "traffic[0].stagger: spreads the starts over 5184000s",
    );
    let endless = net(2, 4);
    let found = endless.problems("[[traffic]]\nkind = \"poisson\"\nsizes = { kind = \"fixed\", size = \"1B\" }\nper_second = 1e-3\ncount = 1000\n[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1bps\"\nsize = \"1MB\"");
    assert_problem(&found, "traffic[0].count: 1000 arrivals take about 1.000e6 s; accepted: arrivals within 864000s");
    assert_problem(&found, "traffic[1].size: 1MB takes too long at 1bps");
    let chain: String = (0..12)
        .map(|i| {
            let after = if i == 0 { String::new() } else { format!("after = [\"e{}\"]\ndelay = \"800000s\"\n", i - 1) };
            format!("[[traffic]]\nname = \"e{i}\"\n{after}kind = \"permutation\"\nsize = \"1B\"\n")
        })
        .collect();
    assert_problem(&endless.problems(&chain), "traffic: has delays and intervals of 8800000s in all; accepted: at most 8640000s");
}

#[test]
fn nothing_is_offered_to_wait_for_itself() {
    let found = problems("name = \"own\"\nafter = [\"owm\"]\nkind = \"permutation\"\nsize = \"1B\"\n[[traffic]]\nname = \"first\"\nafter = [\"x\"]\nkind = \"permutation\"\nsize = \"1B\"");
    assert_problem(&found, "traffic[0].after[0]: \"owm\" is not a known flow id or entry name; accepted: first");
    assert_problem(&found, "traffic[1].after[0]: \"x\" is not a known flow id or entry name; accepted: own");
    let alone = problems("after = [\"x\"]\nkind = \"permutation\"\nsize = \"1B\"");
    assert_problem(
        &alone,
        "traffic[0].after[0]: \"x\" is not a known flow id or entry name; accepted: nothing: there is no other",
    );
}

#[test]
fn a_file_that_is_no_text_is_refused_once() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(dir.join("bytes"), b"1 0.5\n\x00\x1b[2J\xff\n\x01 \xfe\n\x02\n").unwrap();
    let at = net(2, 4).until_ms(10).dir(dir);
    let sizes = "[[traffic]]\nkind = \"poisson\"\nload = 0.5\nsizes = { kind = \"file\", path = \"bytes\" }";
    assert_eq!(at.problems(sizes), ["traffic[0].sizes.path (bytes), line 2: is not text in UTF-8; accepted: a text file"]);
    for format in ["csv", "hpcc_flow", "htsim_cm"] {
        let found = at.problems(&format!("[[traffic]]\nkind = \"file\"\nformat = {{ kind = \"{format}\", path = \"bytes\" }}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains(|c: char| c.is_control()), "{found:?}");
    }
}

#[test]
fn an_id_given_twice_is_reported_beside_a_host_that_does_not_exist() {
    let found = problems(
        "kind = \"flows\"\nflows = [{ id = \"a\", src = \"h0\", dst = \"h1\", size = \"1B\" }, { id = \"a\", src = \"h0\", dst = \"h99\", size = \"1B\" }]",
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert_problem(&found, "traffic[0].flows[1].dst: \"h99\" is not a known host");
    assert_problem(&found, "traffic[0].flows[1].id: \"a\" is also the name of another entry or flow; accepted: ids that differ");
}
