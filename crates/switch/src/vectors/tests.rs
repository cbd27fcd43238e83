use super::*;
use fanin_params::Value;

fn table(entries: &[(&str, Value)]) -> Node {
    Value::Table(entries.iter().map(|(key, value)| (key.to_string(), value.clone().into())).collect()).into()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| text(item).into()).collect())
}

fn every_value_fits(made: &Vectors) {
    for sequence in &made.sequences {
        let rows = std::iter::once((made.settings, &sequence.settings)).chain(sequence.rows.iter().map(|r| (made.columns, r)));
        for (columns, row) in rows {
            assert_eq!(columns.len(), row.len());
            for (column, value) in columns.iter().zip(row) {
                assert!(column.holds(i128::from(*value)), "{} of {}: {value}", column.name, sequence.case);
            }
        }
    }
}

#[test]
fn every_value_has_room_in_its_column() {
    for (at, clock) in [("enqueue", "8ns"), ("dequeue", "1ns"), ("enqueue", "20ns")] {
        let registers = table(&[("clock", text(clock)), ("credit", text("65535B"))]).value;
        let made = vectors("s-ecn", &table(&[("at", text(at)), ("registers", registers)])).unwrap();
        assert_eq!(made.sequences.len(), 90);
        every_value_fits(&made);
    }
}

#[test]
fn every_value_of_rimm_has_room_in_its_column() {
    for (ports, alpha, bits) in [(3, "1600000B", 12), (1, "3B", 0), (64, "3GB", 16)] {
        let settings = [("neighbours", Value::Int(ports)), ("alpha", text(alpha)), ("hash_bits", Value::Int(bits))];
        let made = vectors("rimm", &table(&settings)).unwrap();
        assert_eq!(made.sequences.len(), 26);
        every_value_fits(&made);
    }
}

#[test]
fn every_value_of_rcm_has_room_in_its_column() {
    for (q_eq, w_q, decrease) in [("26KB", 2, "each"), ("1B", 0, "measured"), ("100MB", 64, "each")] {
        let settings = [("q_eq", text(q_eq)), ("w_q", Value::Int(w_q)), ("decrease", text(decrease))];
        let made = vectors("rcm", &table(&settings)).unwrap();
        assert_eq!(made.sequences.len(), 7);
        every_value_fits(&made);
    }
}

#[test]
fn every_value_of_pdn_has_room_in_its_column() {
    for (queue, max_frame, ttl) in [("200B", "1518B", 64), ("44B", "128B", 2), ("100KB", "65535B", 255)] {
        let settings = [("queue", text(queue)), ("max_frame", text(max_frame)), ("ttl", Value::Int(ttl))];
        let made = vectors("pdn", &table(&settings)).unwrap();
        assert_eq!(made.sequences.len(), 16);
        every_value_fits(&made);
    }
}

/// Each fate and each way to leave is there; what a sequence sends is what it queued, in order.
#[test]
fn notifications_leave_in_the_order_in_which_they_were_queued() {
    let made = vectors("pdn", &table(&[])).unwrap();
    let column = |name: &str| made.columns.iter().position(|c| c.name == name).unwrap();
    let (fate, sends, number, sent) = (column("fate"), column("sends"), column("number"), column("sent_number"));
    let mut met = std::collections::BTreeSet::new();
    for sequence in &made.sequences {
        let queued: Vec<i64> = sequence.rows.iter().filter(|r| r[fate] == 1).map(|r| r[number]).collect();
        let left: Vec<i64> = sequence.rows.iter().filter(|r| r[sends] > 0).map(|r| r[sent]).collect();
        assert_eq!(queued[..left.len()], left, "{}", sequence.case);
        let waiting = sequence.rows.last().unwrap()[column("waiting")];
        assert_eq!((queued.len() - left.len()) as i64, waiting, "{}", sequence.case);
        met.extend(sequence.rows.iter().map(|r| (r[fate], r[sends])));
    }
    assert_eq!(Vec::from_iter(met), [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (3, 0), (4, 0)]);
}

#[test]
fn the_cases_reach_what_they_are_for() {
    let made = vectors("s-ecn", &table(&[("rates", list(&["1Gbps"]))])).unwrap();
    let column = |name: &str| made.columns.iter().position(|c| c.name == name).unwrap();
    let count = |case: &str, name: &str, wanted: &dyn Fn(i64) -> bool| {
        let sequence = made.sequences.iter().find(|s| s.case == case).unwrap();
        sequence.rows.iter().filter(|row| wanted(row[column(name)])).count()
    };
    for case in ["slopes", "idle", "pairs", "sizes", "saturation", "ecn", "threshold", "exact", "random"] {
        let (rows, marks) = (count(case, "mark", &|_| true), count(case, "mark", &|m| m == 1));
        assert!(0 < marks && marks < rows, "{case}: {marks} of {rows}");
        assert!(count(case, "added", &|v| v == -1538 << 20) > 0, "{case} reaches the credit");
    }
    assert!(count("threshold", "by_k", &|v| v == 1) > 20);
    assert!(count("saturation", "interval", &|v| v == 0xff_ffff) >= 4);
    assert_eq!(count("saturation", "interval", &|v| v == 0xff_fffe), 1);
    assert!(count("idle", "interval", &|v| v == 0xff_ffff) >= 3);
    assert!(count("ecn", "ecn", &|v| v == 0) > 50);
    assert_eq!(count("exact", "growth", &|v| v == 0), 36);
    for k in [64, 65, 1518, 1519, 1582, 3035, 3036, 32_000, 999_999] {
        let made = vectors("s-ecn", &table(&[("cases", list(&["exact"])), ("k", text(&format!("{k}B")))])).unwrap();
        for sequence in &made.sequences {
            let last = &sequence.rows[sequence.rows.len() - 1];
            let [queue, by_slope, by_k, mark] = ["queue", "by_slope", "by_k", "mark"].map(|name| last[column(name)]);
            assert_eq!([queue, by_slope, by_k, mark], [k, 0, 1, 1], "the queue is K, and that alone marks");
        }
    }
}

#[test]
fn at_dequeue_every_packet_leaves_and_every_mark_that_is_earned_is_given() {
    let made = vectors("s-ecn", &table(&[("at", text("dequeue")), ("rates", list(&["1Gbps"])), ("k", text("1MB"))])).unwrap();
    let column = |name: &str| made.columns.iter().position(|c| c.name == name).unwrap();
    for sequence in made.sequences.iter().filter(|s| s.case != "threshold") {
        let sum = |name: &str| sequence.rows.iter().map(|row| row[column(name)]).sum::<i64>();
        assert_eq!(sum("departure") * 2, sequence.rows.len() as i64);
        let earned = sequence.rows.iter().filter(|r| r[column("by_slope")] == 1 && r[column("ecn")] != 0).count() as i64;
        assert!(earned > 0, "{}", sequence.case);
        assert_eq!(earned, sum("mark"), "{}", sequence.case);
        assert_eq!(sequence.rows.last().unwrap()[column("owed")], 0);
    }
}

#[test]
fn what_is_wrong_is_said_all_at_once() {
    let said = |name: &str, params: Node| -> Vec<String> {
        vectors(name, &params).unwrap_err().iter().map(ToString::to_string).collect()
    };
    let unknown = said("s-enc", table(&[]));
    assert_eq!(
        unknown,
        ["\"s-enc\" is not a known mechanism with test vectors; accepted: pdn, rcm, rimm, s-ecn; did you mean 's-ecn'?"]
    );
    let wrong = said("s-ecn", table(&[("cases", list(&["pair"])), ("rates", list(&["1Mbps"])), ("k", text("2"))]));
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong[0].contains("cases[0]") && wrong[0].contains("did you mean 'pairs'"), "{wrong:?}");
    let misspelt = said("s-ecn", table(&[("cases", list(&["pairs"])), ("credt", text("1B"))]));
    assert!(misspelt.len() == 1 && misspelt[0].contains("credt"), "{misspelt:?}");
    assert!(wrong[1].contains("from 10Mbps to 1600Gbps") || wrong[1].contains("1.6Tbps"), "{wrong:?}");
}
