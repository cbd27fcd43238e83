//! A page's analysis reads its files of a host, and says what an analysis of files says.

use fanin_analysis::trace::{self, Control, Observer, Options, Progress};
use fanin_web::{Host, Session};
use serde_json::{json, Value};
use std::io::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Files in memory.
#[derive(Debug, Default)]
struct Memory {
    files: Vec<Vec<u8>>,
    /// Reads until the file is gone.
    patience: Option<u64>,
    /// Words on the progress until it ends the reading.
    interest: Option<u64>,
    reads: AtomicU64,
    words: AtomicU64,
}

impl Host for Memory {
    fn read(&self, file: usize, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        if self.patience.is_some_and(|most| reads >= most) {
            return Err(Error::other("gone"));
        }
        let rest = &self.files[file][offset as usize..];
        // Never more than 1,000 bytes: whoever reads must ask again.
        let read = buf.len().min(rest.len()).min(1_000);
        buf[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn goes_on(&self, progress: Progress) -> bool {
        assert!((0.0..=1.0).contains(&progress.done));
        let words = self.words.fetch_add(1, Ordering::Relaxed);
        self.interest.is_none_or(|most| words < most)
    }
}

/// The queue of a port while a burst comes and goes, once in each of `bursts` milliseconds: 400 packets by three flows, 100 of them dropped.
fn table(bursts: u64) -> Vec<u8> {
    let mut text = "time_ns,port,queue_bytes,frame_bytes,flow,dropped\n".to_string();
    for burst in 0..bursts {
        for packet in 0..400 {
            let queue = if packet < 200 { packet * 1_500 } else { (400 - packet) * 1_500 };
            let (time, dropped) = (burst * 1_000_000 + packet * 1_200, u64::from((150..250).contains(&packet)));
            text += &format!("{time},eth{},{queue},1518,flow{},{dropped}\n", burst % 2, packet % 3);
        }
    }
    text.into_bytes()
}

fn call(session: &mut Session, request: &Value) -> Value {
    serde_json::from_str(&session.call(&request.to_string())).expect("JSON")
}

fn asked(what: &str, size: usize) -> Value {
    json!({
        "do": what,
        "files": [{"name": "a.csv", "size": size}],
        "settings": {"paths": ["a.csv"], "rate": "10Gbps", "top": 5},
    })
}

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

#[test]
fn the_report_is_that_of_a_file() {
    let bytes = table(20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, &bytes).unwrap();
    let name = path.to_str().unwrap();
    let options = json!({"paths": [name], "rate": "10Gbps", "top": 5});
    let by_file = trace::analyze(&Options::from_json(&options.to_string()).unwrap(), &mut Patient).unwrap();
    let by_file = serde_json::to_string(&by_file).unwrap().replace(name, "a.csv");

    let request = asked("analyze", bytes.len());
    let mut session = Session::with(Arc::new(Memory { files: vec![bytes], ..Memory::default() }));
    for _ in 0..2 {
        assert_eq!(session.call(&request.to_string()), format!("{{\"report\":{by_file}}}"));
    }
    let report: Value = serde_json::from_str(&by_file).unwrap();
    let bursts: Vec<usize> = report["ports"].as_array().unwrap().iter().map(|p| p["bursts"].as_array().unwrap().len()).collect();
    assert_eq!(bursts, [10, 10]);
}

#[test]
fn records_are_in_each_stretch_that_they_lie_in() {
    let bytes = table(4);
    let mut request = asked("explore", bytes.len());
    // Of both ports, overlapping, not in order; the last one is of a port that is not there.
    let stretch = |port: &str, low: u64, high: u64, columns: u64, keep: bool| json!({"port": port, "low": low, "high": high, "columns": columns, "keep": keep});
    let burst = 480_000_000;
    request["stretches"] = json!([
        stretch("eth0", 2_000_000_000, 2_000_000_000 + burst - 1, 2, true),
        stretch("eth0", 0, 2_999_999_999, 3, false),
        stretch("eth1", 1_000_000_000, 1_000_000_000 + burst - 1, 4, false),
        stretch("eth0", 0, 12_000_000, 1, true),
        stretch("eth9", 0, 1, 1, true),
    ]);
    let mut session = Session::with(Arc::new(Memory { files: vec![bytes], ..Memory::default() }));
    let answer = call(&mut session, &request);
    let seen = answer["stretches"].as_array().unwrap();
    assert_eq!(
        seen.iter().map(|s| s["n"].clone()).collect::<Vec<_>>(),
        [json!([200, 200]), json!([400, 0, 400]), json!([100, 100, 100, 100]), json!([11]), json!([0]),]
    );
    assert_eq!(seen[0]["drops"], json!([50, 50]));
    assert_eq!(seen[0]["queue"], json!([199 * 1_500, 200 * 1_500]));
    assert_eq!(seen[1]["bytes"], json!([400 * 1_518, 0, 400 * 1_518]));
    assert_eq!(seen[1]["queue"], json!([300_000, -1, 300_000]));
    assert_eq!(seen[1]["wait"], json!([-1, -1, -1]));
    assert!(seen[1]["packets"].is_null() && seen[2]["packets"].is_null());
    let packets = &seen[3]["packets"];
    assert_eq!(packets["time"].as_array().unwrap().len(), 11);
    assert_eq!(packets["queue"][10], 15_000);
    assert_eq!(packets["flow"], json!([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]));
    assert_eq!(answer["names"], json!(["flow0", "flow1", "flow2"]));
    assert_eq!(seen[0]["packets"]["fate"].as_array().unwrap().iter().filter(|fate| **fate == json!(2)).count(), 100);
}

#[test]
fn what_is_wrong_is_answered() {
    let bytes = table(3);
    let size = bytes.len();
    let session = |patience, interest| {
        let files = vec![bytes.clone()];
        Session::with(Arc::new(Memory { files, patience, interest, ..Memory::default() }))
    };
    let words = |answer: &Value| answer["problems"][0]["text"].as_str().unwrap_or_default().to_string();
    let mut request = asked("analyze", size);
    request["settings"]["rate"] = "10 Gbsp".into();
    assert!(words(&call(&mut session(None, None), &request)).contains("rate: '10 Gbsp'"));
    request = asked("analyze", size);
    request["settings"]["paths"] = json!(["b.csv"]);
    assert_eq!(words(&call(&mut session(None, None), &request)), "b.csv: there is no such file");
    let gone = call(&mut session(Some(3), None), &asked("analyze", size));
    assert!(words(&gone).contains("a.csv: cannot be read: gone"), "{gone}");
    for what in ["analyze", "explore"] {
        let mut request = asked(what, size);
        if what == "explore" {
            request["stretches"] = json!([]);
        }
        assert_eq!(call(&mut session(None, Some(0)), &request), json!({"error": "stopped"}), "{what}");
    }
    // A session without a host has no files.
    assert!(words(&call(&mut Session::default(), &asked("analyze", size))).contains("a.csv: cannot be read"));
}
