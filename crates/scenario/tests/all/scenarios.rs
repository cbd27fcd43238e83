//! The scenarios that come with Fanin are sound, and say so about themselves.

use fanin_scenario::{render, Scenario};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The scenarios in a folder, by name of the file.
fn of(folder: PathBuf) -> Vec<(String, Scenario)> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    names.sort();
    let load = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match Scenario::load(&path) {
            Ok(scenario) => (name, scenario),
            Err(problems) => panic!("{}", render(&problems, &name)),
        }
    };
    names.into_iter().map(load).collect()
}

/// Those of papers, by name of paper and file: `s-ecn-sync`.
fn of_papers() -> Vec<(String, Scenario)> {
    let mut papers: Vec<PathBuf> =
        std::fs::read_dir(folder().join("papers")).unwrap().map(|entry| entry.unwrap().path()).collect();
    papers.sort();
    let named = |paper: PathBuf| {
        let name = paper.file_name().unwrap().to_string_lossy().into_owned();
        of(paper).into_iter().map(move |(file, scenario)| (format!("{name}-{file}"), scenario))
    };
    papers.into_iter().flat_map(named).collect()
}

fn all() -> Vec<(String, Scenario)> {
    of(folder()).into_iter().chain(of_papers()).collect()
}

#[test]
fn each_is_sound_without_a_warning_and_named_like_its_file() {
    let all = of(folder());
    assert!(all.len() >= 4);
    for (name, scenario) in &all {
        assert_eq!(render(scenario.warnings(), name), "");
        assert_eq!(scenario.name(), name);
        assert!(scenario.doc().description.is_some(), "{name}");
    }
}

/// What a paper has may be what we warn of: an RTO_min of 200 ms, first windows that a small buffer cannot hold, and samples that are
/// taken for throughput, not for bursts; a hot spot asks more of its hosts than their links carry.
#[test]
fn those_of_papers_warn_of_what_the_papers_had_and_are_named_like_paper_and_file() {
    let all = of_papers();
    assert!(all.len() >= 5);
    for (name, scenario) in &all {
        for warning in scenario.warnings() {
            let (path, text) = (warning.path.to_string(), warning.to_string());
            let hot_spot = name == "rcm-hot-spot" && text.contains("asks more than a link carries");
            let first_round = text.contains("packets are lost in the first round");
            let expected = path.ends_with(".rto_min") || path.ends_with(".sample") || first_round || hot_spot;
            assert!(expected, "{name}: {text}");
        }
        assert_eq!(scenario.name(), name);
        assert!(scenario.doc().description.is_some(), "{name}");
    }
}

#[test]
fn the_resolved_form_reads_back_as_the_same_scenario() {
    for (name, scenario) in all() {
        let text = scenario.resolved().to_string();
        let again = Scenario::from_json(&text, &folder()).unwrap_or_else(|problems| panic!("{}", render(&problems, &name)));
        assert_eq!(again, scenario, "{name}");
        assert_eq!(again.hash(), scenario.hash(), "{name}");
        assert_eq!(again.resolved().to_string(), text, "{name}");
    }
}

#[test]
fn the_demo_has_the_size_that_it_promises() {
    let demo = Scenario::load(&folder().join("demo.toml")).unwrap();
    let mut traffic = demo.traffic().unwrap();
    let (mut background, mut queries, mut bytes) = (0u64, 0u64, 0u64);
    while let Some(flow) = traffic.pop() {
        *(if flow.query.is_some() { &mut queries } else { &mut background }) += 1;
        bytes += flow.size;
    }
    assert!((7_500..8_700).contains(&background), "{background} background flows");
    assert!((72_000..78_000).contains(&queries), "{queries} responses");
    // Half of 32 links of 10 Gb/s for 0.75 s: 15 GB, in sizes of a heavy tail.
    assert!((13_500_000_000..16_500_000_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn the_example_of_the_reference_page_is_sound() {
    let page = fanin_scenario::reference();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let scenario =
        Scenario::from_toml(example, &folder()).unwrap_or_else(|problems| panic!("{}", render(&problems, "docs/scenario.md")));
    assert_eq!(render(scenario.warnings(), "docs/scenario.md"), "");
}

/// A switch takes no longer to set up with 5,000 flows than with one: the document is not copied for it. The least of five times.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is the time that is tested")]
fn a_long_list_of_flows_does_not_make_each_switch_dearer() {
    let least = |flows: usize| {
        let flow = r#"{"src": "h0", "dst": "h1", "size": "1KB"}"#;
        let document = format!(
            r#"{{"name": "x", "topology": {{"kind": "single_switch", "hosts": 2}}, "traffic": [{{"kind": "flows", "flows": [{}]}}]}}"#,
            vec![flow; flows].join(",")
        );
        let scenario = Scenario::from_json(&document, &folder()).unwrap();
        let switch = scenario.topology().node("switch0").unwrap();
        let took = |_| {
            let start = std::time::Instant::now();
            std::hint::black_box((0..20).map(|_| scenario.site(switch)).collect::<Vec<_>>());
            start.elapsed()
        };
        (0..5).map(took).min().unwrap()
    };
    let (one, many) = (least(1), least(5_000));
    assert!(many < 20 * one, "{many:?} with 5,000 flows, {one:?} with one");
}
