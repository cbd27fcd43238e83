use super::*;

fn columns(names: &[&str]) -> Vec<Column> {
    names.iter().map(|n| Column { name: (*n).to_string(), declared: None, first: None }).collect()
}

fn message(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_mapping_names_columns_and_units() {
    let mapping = Mapping::read("time=ts:ns,queue=qlen:cells(208B), flow = five_tuple ,marked=ecn:ecn").unwrap();
    let binding = bind(Some(&mapping), &columns(&["qlen", "ts", "five_tuple", "ecn"])).unwrap();
    let got: Vec<_> = binding.columns.iter().map(|b| (b.role, b.index, b.unit)).collect();
    assert_eq!(
        got,
        [
            (Role::Time, 1, Unit::Steps(1_000)),
            (Role::Queue, 0, Unit::Steps(208)),
            (Role::Flow, 2, Unit::Name),
            (Role::Marked, 3, Unit::Ecn)
        ]
    );
    assert!(binding.notes.is_empty(), "nothing was guessed: {:?}", binding.notes);
}

#[test]
fn counters_whose_names_say_their_width_have_it_whoever_names_them() {
    for (column, bits) in [("ifOutOctets", 32), ("ifHCOutOctets", 64)] {
        let mapping = Mapping::read(&format!("time=ts:s,bytes={column}:total")).unwrap();
        let binding = bind(Some(&mapping), &columns(&["ts", column])).unwrap();
        assert_eq!(binding.columns[1].unit, Unit::TotalOf(bits), "{column}");
    }
    let mapping = Mapping::read("time=ts:s,bytes=mine:total").unwrap();
    assert_eq!(bind(Some(&mapping), &columns(&["ts", "mine"])).unwrap().columns[1].unit, Unit::Total);
}

#[test]
fn a_column_with_separators_in_its_name_stands_in_quotes_and_a_column_may_be_a_number() {
    let mapping = Mapping::read("time=\"a,b:c=d\":us,queue=2:packets(1518)").unwrap();
    let binding = bind(Some(&mapping), &columns(&["a,b:c=d", "x y"])).unwrap();
    assert_eq!(binding.columns[0], Bound { role: Role::Time, index: 0, unit: Unit::Steps(1_000_000) });
    assert_eq!(binding.columns[1], Bound { role: Role::Queue, index: 1, unit: Unit::Steps(1518) });
}

#[test]
fn everything_that_is_wrong_with_a_mapping_is_said_at_once() {
    let problems =
        Mapping::read("tme=ts,queue=q:cells,time=t:NS,frame=len:KB,marked,dropped=,time=a,time=b,queue=x:cells(0)").unwrap_err();
    let text = message(&problems);
    for part in [
        "--columns: 'tme' is nothing that a column can mean; accepted: time, queue, port, flow, frame, marked, dropped, replaced, at_head, payload, syn, bytes, arrived, packets, drops, marks, watermark, interval, speed; did you mean 'time'?",
        "--columns: queue: 'cells' is no unit of it",
        "say how large one is, for example cells(208B)",
        "time: 'NS' is no unit of it; accepted: ps, ns, us, ms, s, iso (2026-11-21T08:00:00.5Z); did you mean 'ns'?",
        "frame: 'KB' is no unit of it; accepted: B",
        "'marked' is not of the form ROLE=COLUMN[:UNIT]",
        "dropped: names no column",
        "'time' is given twice",
        "'cells(0)' does not say a size from 1 B to 65535 B",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn a_column_that_is_not_there_lists_those_that_are() {
    let mapping = Mapping::read("time=ts:ns,queue=qlne").unwrap();
    let problems = bind(Some(&mapping), &columns(&["ts", "qlen"])).unwrap_err();
    assert_eq!(message(&problems), "queue: 'qlne' is no column of this file; did you mean 'qlen'? the columns are: ts, qlen");
    let twice = Mapping::read("time=ts:ns,queue=ts").unwrap();
    assert!(message(&bind(Some(&twice), &columns(&["ts"])).unwrap_err()).contains("'ts' is already the column of 'time'"));
}

#[test]
fn common_names_are_guessed_and_said() {
    let binding = bind(None, &columns(&["Timestamp (us)", "ifName", "Queue_Depth_KB", "other", "ce", "length"])).unwrap();
    let got: Vec<_> = binding.columns.iter().map(|b| (b.role, b.index, b.unit)).collect();
    assert_eq!(
        got,
        [
            (Role::Time, 0, Unit::Steps(1_000_000)),
            (Role::Queue, 2, Unit::Steps(1_000)),
            (Role::Port, 1, Unit::Name),
            (Role::Frame, 5, Unit::Steps(1)),
            (Role::Marked, 4, Unit::Flag)
        ]
    );
    assert_eq!(
        binding.notes,
        ["columns were guessed by their names: time = 'Timestamp (us)' [us], queue = 'Queue_Depth_KB' [KB], \
          port = 'ifName', frame = 'length' [B], marked = 'ce'; not used: other; --columns says otherwise"]
    );
}

#[test]
fn a_queue_without_unit_is_bytes_and_says_so_and_a_time_without_unit_is_an_error() {
    let mut there = columns(&["ts", "queue"]);
    let problems = bind(None, &there).unwrap_err();
    assert!(message(&problems).contains("time: 'ts' has no unit, and neither its name nor its values show one"), "{problems:?}");
    for (first, unit) in [
        ("1763725651.25", Unit::Steps(1_000_000_000_000)),
        ("1763725651250", Unit::Steps(1_000_000_000)),
        ("1763725651250000", Unit::Steps(1_000_000)),
        ("1763725651250000000", Unit::Steps(1_000)),
        ("2026-11-21T08:00:00Z", Unit::Iso),
    ] {
        there[0].first = Some(first.to_string());
        let binding = bind(None, &there).unwrap();
        assert_eq!(binding.get(Role::Time).unwrap().unit, unit, "{first}");
        assert!(binding.notes[0].starts_with("the queue in 'queue' is taken as bytes"), "{:?}", binding.notes);
    }
}

#[test]
fn qlen_is_packets_where_backlog_is_bytes_and_says_nothing_alone() {
    let binding = bind(None, &columns(&["time_ns", "qlen", "backlog", "drops"])).unwrap();
    let got: Vec<_> = binding.columns.iter().map(|b| (b.role, b.index, b.unit)).collect();
    let queue = (Role::Queue, 2, Unit::Steps(1));
    assert_eq!(got, [(Role::Time, 0, Unit::Steps(1_000)), queue, (Role::Dropped, 3, Unit::Total)]);
    assert!(binding.notes[0].contains("queue = 'backlog' [B], dropped = 'drops' [running count]; not used: qlen"), "{binding:?}");
    for mapping in [None, Some("time=time_ns,queue=qlen")] {
        let mapping = mapping.map(|text| Mapping::read(text).unwrap());
        let text = message(&bind(mapping.as_ref(), &columns(&["time_ns", "qlen"])).unwrap_err());
        assert!(
            text.contains("queue: 'qlen' has no unit: by this name tc counts packets")
                && text.contains("queue=qlen:packets(1514B)"),
            "{text}"
        );
    }
    let packets = Mapping::read("time=time_ns,queue=qlen:packets(1514B),dropped=d:total").unwrap();
    let binding = bind(Some(&packets), &columns(&["time_ns", "qlen", "d"])).unwrap();
    assert_eq!(binding.get(Role::Queue).unwrap().unit, Unit::Steps(1_514));
    assert_eq!(binding.get(Role::Dropped).unwrap().unit, Unit::Total);
}

#[test]
fn a_queue_in_cells_is_no_queue_that_is_not_there() {
    let text = message(&bind(None, &columns(&["ts_ns", "qlen_cells", "len"])).unwrap_err());
    assert!(text.contains("queue: 'qlen_cells' counts cells, it seems, and nothing says how large they are"), "{text}");
    assert!(text.contains("queue=qlen_cells:cells(208B)"), "{text}");
    let text = message(&bind(None, &columns(&["ts_ns", "Queue_Depth (pkts)", "len"])).unwrap_err());
    assert!(text.contains("packets(1518B)"), "{text}");
}

#[test]
fn a_file_without_time_or_queue_says_what_it_has() {
    let text = message(&bind(None, &columns(&["a", "b"])).unwrap_err());
    assert!(text.contains("time: is not found: no column has one of its common names"), "{text}");
    assert!(text.contains("queue: is not found") && text.contains("the columns are: a, b"), "{text}");
    let frames = bind(Some(&Mapping::read("time=a:ns,frame=b").unwrap()), &columns(&["a", "b"]));
    assert!(frames.is_ok(), "rates need no queue");
}
