//! A session is what a page sees: it must answer everything, and agree with a run and an analysis by files.

use fanin_scenario::Scenario;
use fanin_sim::{Control, Observer, Progress};
use fanin_web::Session;
use serde_json::{json, Value};
use std::path::Path;

const INCAST: &str = r#"
    [topology]
    kind = "single_switch"
    hosts = 21
    link = { rate = "10Gbps", delay = "10us" }
    [switch]
    buffer = { kind = "static", per_port = "250KB" }
    marking = { kind = "threshold", k = "20 packets" }
    [transport]
    kind = "tcp"
    congestion_control = "dctcp"
    handshake = false
    rto_min = "10ms"
    rto_initial = "10ms"
    initial_window = 10
    delayed_ack_timeout = "1ms"
    [[traffic]]
    kind = "incast"
    receiver = "h20"
    size = "200KB"
    [telemetry]
    sample = "off"
    queues = ["switch0->h20"]
"#;

fn call(session: &mut Session, request: &Value) -> Value {
    serde_json::from_str(&session.call(&request.to_string())).expect("JSON")
}

/// Runs a scenario in steps of `events`; the last answer to `advance`, and that to `finish`.
fn run(session: &mut Session, text: &str, events: u64, points: usize) -> (Value, Value) {
    let started = call(session, &json!({"do": "start", "scenario": text}));
    assert!(started["hash"].is_string(), "{started}");
    loop {
        let now = call(session, &json!({"do": "advance", "events": events}));
        assert!(now["error"].is_null(), "{now}");
        if now["done"] == true {
            return (now, call(session, &json!({"do": "finish", "points": points})));
        }
    }
}

/// A value as a reader of its text has it: numbers that were read may differ from those written in their last bit.
fn read_again(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).expect("JSON")
}

struct Quiet;

impl Observer for Quiet {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }

    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

#[test]
fn a_run_in_steps_is_a_run_with_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let scenario = Scenario::from_toml(INCAST, Path::new(".")).unwrap();
    let outcome = fanin_sim::run(&scenario, &out, &mut Quiet).unwrap();
    let mut session = Session::default();
    for events in [1 << 20, 997] {
        let (now, end) = run(&mut session, INCAST, events, 1 << 20);
        assert_eq!(now["now_ps"], outcome.manifest["sim_ps"]);
        assert_eq!(now["flows_done"], 20);
        assert_eq!(end["fingerprint"], outcome.manifest["fingerprint"]);
        assert_eq!(end["summary"].to_string(), read_again(&outcome.summary).to_string());
        assert_eq!(end["flows"]["fct_ps"].as_array().unwrap().len(), 20);
        assert_eq!(end["flows"]["unfinished"], 0);

        let options = json!({"paths": [out.to_str().unwrap()]}).to_string();
        let options = fanin_analysis::trace::Options::from_json(&options).unwrap();
        struct Patient;
        impl fanin_analysis::trace::Observer for Patient {
            fn progress(&mut self, _: fanin_analysis::trace::Progress) -> fanin_analysis::trace::Control {
                fanin_analysis::trace::Control::Continue
            }
        }
        let by_files = serde_json::to_value(fanin_analysis::trace::analyze(&options, &mut Patient).unwrap()).unwrap();
        let port = &end["ports"][0];
        assert_eq!(port["port"], "switch0->h20");
        assert_eq!(port["report"]["bursts"], read_again(&by_files)["ports"][0]["bursts"]);
        assert!(!port["report"]["bursts"][0]["phases"].as_array().unwrap().is_empty());
        assert_eq!(port["queue"]["time_ps"].as_array().unwrap().len() as u64, port["queue"]["records"].as_u64().unwrap());
    }
}

#[test]
fn fewer_points_keep_extremes_and_counts() {
    let mut session = Session::default();
    let (_, all) = run(&mut session, INCAST, 1 << 20, 1 << 20);
    let (_, few) = run(&mut session, INCAST, 1 << 20, 50);
    let (all, few) = (&all["ports"][0]["queue"], &few["ports"][0]["queue"]);
    let numbers = |queue: &Value, column: &str| -> Vec<u64> {
        queue[column].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    };
    assert!(numbers(few, "time_ps").len() <= 50 && numbers(few, "time_ps").len() >= 25);
    assert!(numbers(few, "time_ps").is_sorted());
    assert_eq!(numbers(few, "queue_bytes").iter().max(), numbers(all, "queue_bytes").iter().max());
    for column in ["dropped", "marked"] {
        let sums = [few, all].map(|queue| numbers(queue, column).iter().sum::<u64>());
        assert_eq!(sums[0], sums[1], "{column}");
        assert!(sums[0] > 0, "{column}: the test shows nothing");
    }
}

#[test]
fn what_is_wrong_is_answered() {
    let mut session = Session::default();
    let checked = call(&mut session, &json!({"do": "check", "scenario": "[topology]\nkind = \"singel_switch\"\nhosts = -1\n"}));
    assert!(checked["hash"].is_null() && checked["watched"] == json!([]));
    let problems = checked["problems"].as_array().unwrap();
    assert!(problems.iter().any(|p| p["text"].as_str().unwrap().contains("did you mean") && p["line"] == 2), "{problems:?}");
    let good = call(&mut session, &json!({"do": "check", "scenario": INCAST}));
    assert_eq!(good["watched"], json!(["switch0->h20"]));
    let [warning] = good["problems"].as_array().unwrap().as_slice() else { panic!("{good}") };
    assert_eq!((&warning["severity"], &warning["line"]), (&json!("warning"), &json!(17)));
    for (request, words) in [
        (json!({"do": "advance", "events": 5}), "no run is under way"),
        (json!({"do": "finish", "points": 5}), "no run is under way"),
        (json!({"do": "dance"}), "unknown variant `dance`"),
        (json!({"do": "advance", "events": -5}), "cannot be understood"),
        (json!({"do": "advance", "events": 5, "more": 1}), "cannot be understood"),
        (json!(7), "cannot be understood"),
    ] {
        let answer = call(&mut session, &request);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{request}: {answer}");
    }
    assert!(serde_json::from_str::<Value>(&session.call("{")).unwrap()["error"].is_string());
    // A scenario that cannot be run ends the run before it.
    call(&mut session, &json!({"do": "start", "scenario": INCAST}));
    call(&mut session, &json!({"do": "start", "scenario": "x"}));
    assert!(call(&mut session, &json!({"do": "advance", "events": 5}))["error"].is_string());
}

/// A page has no sockets: the scenario is refused where it asks for one, and nothing is started.
#[test]
fn a_block_at_a_socket_is_refused_with_its_place() {
    let mut session = Session::default();
    let except = "except = [{ ports = [\"switch0->h20\"], marking = \"external\" }]";
    for (marking, place) in [
        ("marking = \"external\"".to_string(), "switch.marking"),
        (format!("marking = \"none\"\n{except}"), "switch.except[0].marking"),
    ] {
        let text = INCAST.replace("marking = { kind = \"threshold\", k = \"20 packets\" }", &marking);
        let answer = call(&mut session, &json!({"do": "start", "scenario": text}));
        assert!(answer["hash"].is_null() && answer["problems"].as_array().is_some_and(|all| all.len() == 1), "{answer}");
        let text = format!(
            "{place}: asks a block at a socket, which a page cannot reach; accepted: any other policy; run it by the command fanin"
        );
        assert_eq!(answer["problems"][0]["text"], text.as_str());
        let next = call(&mut session, &json!({"do": "advance", "events": 1}));
        assert!(next["error"].as_str().is_some_and(|error| error.contains("no run is under way")), "{next}");
    }
}
