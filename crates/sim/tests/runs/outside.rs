//! Blocks at a socket that decide about packets: what they are told, what their decisions do, and what becomes of a run whose block
//! fails. The blocks here are threads, which speak the protocol by the page (docs/cosimulation.md) alone.

use fanin_scenario::Scenario;
use fanin_sim::{run, summarize, Control, Observer, Progress, RunError};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }
    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

/// An incast over a switch with `marking`, and `more` keys of it.
fn scenario(marking: &str, more: &str) -> Scenario {
    let text = format!(
        "[topology]\nkind = \"single_switch\"\nhosts = 6\nlink = {{ rate = \"10Gbps\", delay = \"2us\" }}\n[switch]\nmarking = {marking}\n{more}\n\
         [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\n[telemetry]\nqueues = [\"switch0->h5\"]\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h5\"\nsize = \"60KB\"\n"
    );
    Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn external(socket: &Path, more: &str) -> String {
    format!("{{ kind = \"external\", socket = \"{}\", timeout = \"300ms\"{more} }}", socket.display())
}

/// A block in a folder of its own; `serve` gets the connection and what came first.
struct Block<T> {
    folder: tempfile::TempDir,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Block<T> {
    fn new(serve: impl FnOnce(UnixStream, Vec<u8>) -> T + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("block")).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = vec![0; 512];
            stream.read_exact(&mut hello).unwrap();
            let ports = u32::from_le_bytes(hello[12..16].try_into().unwrap()) as usize;
            let mut rest = vec![0; ports * 96];
            stream.read_exact(&mut rest).unwrap();
            hello.extend(rest);
            serve(stream, hello)
        });
        Block { folder, thread }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("block")
    }
}

fn welcome(stream: &mut UnixStream, version: u32, name: &str) {
    let mut frame = [0; 96];
    frame[..8].copy_from_slice(b"fanin-co");
    frame[8..12].copy_from_slice(&version.to_le_bytes());
    frame[16..16 + name.len()].copy_from_slice(name.as_bytes());
    frame[64..67].copy_from_slice(b"2.1");
    stream.write_all(&frame).unwrap();
}

fn number<const N: usize>(frame: &[u8], at: usize) -> u64 {
    frame[at..at + N].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Answers all requests by `decide`; gives them.
fn answer(stream: &mut UnixStream, decide: impl Fn(&[u8]) -> u8) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut frame = vec![0; 64];
    while stream.read_exact(&mut frame).is_ok() {
        let mut reply = [0; 16];
        reply[..8].copy_from_slice(&frame[..8]);
        reply[8] = decide(&frame);
        all.push(frame.clone());
        if stream.write_all(&reply).is_err() {
            break;
        }
    }
    all
}

fn threshold(k: u64, moment: u8) -> impl Fn(&[u8]) -> u8 {
    move |frame| u8::from(frame[60] & 3 == moment && number::<8>(frame, 24) > k)
}

/// Fingerprint, summary without what names the reason, manifest; tables are in `folder`.
fn ran(scenario: &Scenario, folder: &Path) -> (Value, Value) {
    let outcome = run(scenario, folder, &mut Patient).unwrap_or_else(|error| panic!("{error}"));
    let mut summary = outcome.summary;
    let reasons = summary["marks_by_reason"].as_object_mut().expect("a table");
    let marks: u64 = reasons.values().filter_map(Value::as_u64).sum();
    *reasons = [("all".to_string(), marks.into())].into_iter().collect();
    (summary, outcome.manifest)
}

#[test]
fn a_threshold_outside_gives_the_bytes_of_the_one_inside() {
    for (at, moment, more) in [
        ("enqueue", 0, ""),
        ("dequeue", 1, ""),
        ("dequeue", 1, "[engine]\nports = \"explicit\""),
        ("enqueue", 0, "buffer = { kind = \"dynamic\", total = \"60KB\", alpha = 1.0 }"),
        (
            "enqueue",
            0,
            "scheduling = { kind = \"strict\", classes = 2 }\nclass_marking = [{ classes = [1], marking = \"none\" }]",
        ),
    ] {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let inside = scenario(&format!("{{ kind = \"threshold\", k = \"20000B\", at = \"{at}\" }}"), more);
        let (summary, manifest) = ran(&inside, folders[0].path());
        let block = Block::new(move |mut stream, _| {
            welcome(&mut stream, 2, "threshold");
            answer(&mut stream, threshold(20_000, moment))
        });
        let departures = if moment == 1 { ", departures = true" } else { "" };
        let (outer, shown) = ran(&scenario(&external(&block.socket(), departures), more), folders[1].path());
        let requests = block.thread.join().unwrap();
        assert_eq!(summary, outer, "{at} {more}");
        assert!(summary["marks"].as_u64() > Some(20), "{at}: {}", summary["marks"]);
        assert_eq!(manifest["fingerprint"], shown["fingerprint"]);
        assert_ne!(manifest["scenario_hash"], shown["scenario_hash"], "the hash says that an outside block decided");
        for table in ["flows", "queues", "ports"] {
            let [one, other] = [0, 1].map(|i| std::fs::read(folders[i].path().join(format!("{table}.parquet"))).unwrap());
            assert!(one == other, "{table} differ: {at} {more}");
        }
        let facts = &shown["outside"][0];
        assert_eq!((&facts["name"], &facts["version"], &facts["protocol"]), (&"threshold".into(), &"2.1".into(), &2.into()));
        assert_eq!(facts["requests"].as_u64(), Some(requests.len() as u64));
        assert_eq!(manifest.get("outside"), None);
        // Numbers go up by one; the times of a port never go back.
        assert!(requests.iter().zip(0..).all(|(frame, n)| number::<8>(frame, 0) == n));
        for port in 0..12 {
            let times: Vec<u64> =
                requests.iter().filter(|frame| number::<4>(frame, 36) == port).map(|frame| number::<8>(frame, 8)).collect();
            assert!(times.is_sorted(), "port {port}");
        }
    }
}

#[test]
fn a_block_is_told_its_ports_and_settings_and_decides_only_there() {
    let block = Block::new(|mut stream, hello| {
        welcome(&mut stream, 2, "drops");
        let requests = answer(&mut stream, |frame| 2 * u8::from(number::<8>(frame, 0) % 50 == 49));
        (hello, requests)
    });
    let marking = external(&block.socket(), ", settings = \"every=50\", block = \"drops 2.1\"");
    let except = format!("except = [{{ ports = [\"switch0->h5\"], marking = {marking} }}]");
    let outcome = summarize(scenario("\"none\"", &except), &mut Patient).unwrap();
    let (hello, requests) = block.thread.join().unwrap();
    assert_eq!(&hello[32..41], b"every=50\0");
    assert_eq!(hello.len(), 512 + 96, "one port");
    assert_eq!((number::<8>(&hello, 520), hello[518]), (10_000_000_000, 1));
    assert_eq!((number::<8>(&hello, 528), hello[519]), (512_000, 1), "the buffer of the port, in bytes");
    assert_eq!(&hello[544..556], b"switch0->h5\0");
    let port = number::<4>(&hello, 512);
    assert!(requests.iter().all(|frame| number::<4>(frame, 36) == port));
    let full = requests.iter().filter(|frame| number::<2>(frame, 56) == 1518).count();
    assert!(full > 200 && full * 10 > requests.len() * 9, "{full} full frames of {} requests", requests.len());
    let drops = requests.len() as u64 / 50;
    assert_eq!(outcome.summary["drops"].as_u64(), Some(drops));
    assert_eq!(outcome.summary["drops_by_reason"]["external"].as_u64(), Some(drops));
    assert!(drops > 3);
}

#[test]
fn refusals_are_told_where_the_settings_say_so() {
    let told = |more: &str| {
        let block = Block::new(|mut stream, _| {
            welcome(&mut stream, 2, "watcher");
            answer(&mut stream, |_| 0)
        });
        let small = "buffer = { kind = \"static\", per_port = \"20 packets\" }";
        let outcome = summarize(scenario(&external(&block.socket(), more), small), &mut Patient).unwrap();
        let refusals = block.thread.join().unwrap().iter().filter(|frame| frame[60] & 3 == 2).count();
        (refusals as u64, outcome.summary["drops"].as_u64().unwrap())
    };
    let (refusals, drops) = told(", refusals = true");
    assert_eq!(refusals, drops);
    assert!(drops > 10, "{drops}");
    assert_eq!(told("").0, 0);
}

/// A block that answers `good` requests well, and then does `last`.
fn failing(good: u64, last: impl FnOnce(&mut UnixStream, &[u8]) + Send + 'static) -> Block<()> {
    Block::new(move |mut stream, _| {
        welcome(&mut stream, 2, "faulty");
        let mut frame = vec![0; 64];
        for _ in 0..good {
            stream.read_exact(&mut frame).unwrap();
            let mut reply = [0; 16];
            reply[..8].copy_from_slice(&frame[..8]);
            stream.write_all(&reply).unwrap();
        }
        stream.read_exact(&mut frame).unwrap();
        last(&mut stream, &frame);
    })
}

#[test]
fn a_block_that_fails_ends_the_run_with_a_partial_result_that_says_why() {
    type Last = Box<dyn FnOnce(&mut UnixStream, &[u8]) + Send>;
    let late: Last = Box::new(|stream, _| {
        let _ = stream.read(&mut [0; 64]); // until the connection is closed
    });
    let short: Last = Box::new(|stream, frame| stream.write_all(&frame[..9]).unwrap());
    let dies: Last = Box::new(|_, _| ());
    let garbage: Last = Box::new(|stream, _| stream.write_all(b"HTTP/1.1 400 Bad").unwrap());
    let other: Last = Box::new(|stream, frame| {
        let mut reply = [0; 16];
        reply[..8].copy_from_slice(&frame[..8]);
        reply[8] = 4;
        stream.write_all(&reply).unwrap();
    });
    for (last, says) in [
        (late, "took longer than 300ms, the timeout, after 0 of the 16 bytes of its answer to request 123"),
        (short, "closed the connection after 9 of the 16 bytes of its answer to request 123"),
        (dies, "closed the connection before it gave its answer to request 123"),
        (garbage, "answered request 3543824036068086856 where 123 was asked"),
        (other, "answered request 123 with decision 4; accepted: 0 (pass), 1 (mark), 2 (drop)"),
    ] {
        let block = failing(123, last);
        let folder = tempfile::tempdir().unwrap();
        let socket = block.socket();
        let error = run(&scenario(&external(&socket, ""), ""), folder.path(), &mut Patient).unwrap_err();
        block.thread.join().unwrap();
        let text = error.to_string();
        assert!(matches!(error, RunError::Stuck(_)), "{text}");
        let place = "the run cannot go on: nobody decides about packets at port ";
        assert!(
            text.starts_with(place) && text.contains(&format!(": the block 'faulty 2.1' at {} {says}", socket.display())),
            "{text}"
        );
        let manifest: Value = serde_json::from_slice(&std::fs::read(folder.path().join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest["status"], "partial");
        assert!(text.ends_with(manifest["reason"].as_str().unwrap()));
        let requests = manifest["outside"][0]["requests"].as_u64().unwrap();
        assert!((123..=124).contains(&requests), "nothing is asked after that: {requests}");
        assert!(!folder.path().join(".fanin-run").exists(), "files have their names");
    }
}

#[test]
fn a_block_that_cannot_be_had_costs_no_earlier_result() {
    let folder = tempfile::tempdir().unwrap();
    run(&scenario("\"none\"", ""), folder.path(), &mut Patient).unwrap();
    let before = std::fs::read(folder.path().join("manifest.json")).unwrap();
    let refused = |socket: &Path, more: &str, says: &str| {
        let error = run(&scenario(&external(socket, more), ""), folder.path(), &mut Patient).unwrap_err();
        let RunError::Problems(problems) = error else { panic!("{error}") };
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, "switch.marking.socket");
        assert_eq!(problems[0].to_string(), format!("switch.marking.socket: \"{}\" {says}", socket.display()));
        assert_eq!(std::fs::read(folder.path().join("manifest.json")).unwrap(), before);
        assert!(folder.path().join("flows.parquet").exists());
    };
    let nowhere = tempfile::tempdir().unwrap();
    let socket = nowhere.path().join("block");
    refused(&socket, "", "is not there: start the block first, which makes this socket");
    drop(UnixListener::bind(&socket).unwrap());
    refused(&socket, "", "has no listener: the block that made this socket has ended");
    let refused_by = |serve: fn(UnixStream, Vec<u8>), more: &str, says: &str| {
        let block = Block::new(serve);
        refused(&block.socket(), more, says);
        block.thread.join().unwrap();
    };
    refused_by(|mut s, _| welcome(&mut s, 3, "later"), "", "the block there speaks version 3 of the protocol; accepted: 2");
    refused_by(
        |mut s, _| welcome(&mut s, 2, "mine"),
        ", block = \"mine 2.0\"",
        "the block there is \"mine 2.1\"; accepted: \"mine 2.0\", by the key block",
    );
    refused_by(|_, _| (), "", "the block there closed the connection before it sent its first frame");
    refused_by(
        |mut s, _| {
            let _ = s.read(&mut [0; 1]);
        },
        "",
        "the block there took longer than 300ms, the timeout, after 0 of the 96 bytes of its first frame",
    );
    refused_by(
        |mut s, _| s.write_all(&[b'x'; 96]).unwrap(),
        "",
        "the block there does not speak this protocol: its first bytes are [78, 78, 78, 78, 78, 78, 78, 78]",
    );
}

#[test]
fn a_run_with_a_block_outside_has_one_thread_and_says_why() {
    for threads in [0, 4] {
        let block = Block::new(|mut stream, _| {
            welcome(&mut stream, 2, "passes");
            answer(&mut stream, |_| 0)
        });
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(&external(&block.socket(), ""), &format!("[engine]\nthreads = {threads}"));
        let manifest = run(&scenario, folder.path(), &mut Patient).unwrap().manifest;
        block.thread.join().unwrap();
        assert_eq!(manifest["threads"]["count"], 1);
        assert_eq!(manifest["threads"]["why"], "a block outside decides about one packet after the other");
    }
}
