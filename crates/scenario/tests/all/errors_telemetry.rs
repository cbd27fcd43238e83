//! Wrong telemetry, and the exact words that it is refused with.

use crate::common::{lines, wrong};

#[test]
fn ports_of_hosts_are_not_watched() {
    let what = "where no queue is watched: data waits in its socket; accepted: ports of switches";
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"h0->switch0\", \"h*->*\", \"*\"]\n"),
        lines(&[
            &format!("telemetry.queues[0], line 14: \"h0->switch0\" is the port of a host, {what}"),
            &format!("telemetry.queues[1], line 14: \"h*->*\" matches ports of hosts only, {what}"),
        ])
    );
}

#[test]
fn records_of_no_port() {
    assert_eq!(
        wrong(&[], "[telemetry]\nregisters = {}\nkeep = \"last\"\n"),
        lines(&[
            "telemetry.registers, line 14: are filled by no port; accepted: ports in telemetry.queues, or no registers",
            "telemetry.keep, line 15: \"last\" has no effect: no port is watched; accepted: ports in telemetry.queues, or no keep",
        ])
    );
}

#[test]
fn registers_that_do_not_exist() {
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"*->h3\"]\nregisters = { tick = \"0ns\", unit = \"1MB\", width = 8 }\n"),
        lines(&[
            "telemetry.registers.width, line 15: \"width\" is not a known key; accepted: tick, unit",
            "telemetry.registers.tick, line 15: \"0ns\" is out of range; accepted: from 1ns to 1ms",
            "telemetry.registers.unit, line 15: \"1MB\" is out of range; accepted: from 1B to 65536B",
        ])
    );
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"*->h3\"]\nregisters = true\n"),
        lines(&["telemetry.registers, line 15: true is a boolean; accepted: a table with the keys tick, unit"])
    );
}

#[test]
fn more_ports_than_stamps_tell_apart() {
    assert_eq!(
        wrong(&[("hosts = 4", "hosts = 256")], "[telemetry]\nqueues = [\"*\"]\nregisters = {}\n"),
        lines(&[
            "warning: traffic[0], line 9: sends 1161270B in the first windows of 255 flows to a port that holds 512KB: packets are lost in the first round",
            "telemetry.queues, line 14: names 256 ports, more than a stamp can distinguish; accepted: at most 255 ports with telemetry.registers",
        ])
    );
    assert_eq!(wrong(&[("hosts = 4", "hosts = 255")], "[telemetry]\nqueues = [\"*\"]\nregisters = {}\n"), "sound");
}

#[test]
fn rings_and_triggers_out_of_range() {
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"*->h3\"]\nkeep = { kind = \"last\", records = 0 }\n"),
        lines(&["telemetry.keep.records, line 15: 0 is out of range; accepted: from 1 to 100000000"])
    );
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"*->h3\"]\nkeep = { kind = \"around\", before = \"2000s\" }\n"),
        lines(&[
            "telemetry.keep.above, line 15: is missing",
            "telemetry.keep.before, line 15: \"2000s\" is out of range; accepted: from 0ps to 1000s",
        ])
    );
    assert_eq!(
        wrong(&[], "[telemetry]\nqueues = [\"*->h3\"]\nkeep = \"first\"\n"),
        lines(&["telemetry.keep, line 15: \"first\" is not a known kind; accepted: all, last, around"])
    );
}

#[test]
fn a_segment_size_that_leaves_no_room_for_a_stamp() {
    let stamped = "[telemetry]\nqueues = [\"*->h3\"]\nregisters = {}\n";
    assert_eq!(
        wrong(&[("rto_min", "mss = 1448\nrto_min")], stamped),
        lines(&["transport.mss, line 7: 1448 does not fit the MTU; accepted: at most 1440: the MTU of 1500 less 60B of headers and stamp"])
    );
    assert_eq!(wrong(&[("rto_min", "mss = 1440\nrto_min")], stamped), "sound");
}
