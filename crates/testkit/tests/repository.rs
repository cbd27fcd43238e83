//! What the documents say of the repository holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Rust sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for krate in std::fs::read_dir(root().join("crates")).unwrap() {
        let src = krate.unwrap().path().join("src");
        if src.is_dir() {
            sources(&src, &mut found);
        }
    }
    assert!(found.len() > 50, "only {} sources found", found.len());
    found
}

/// The rows of the first table in a document: cells without their spaces.
fn table(document: &str) -> Vec<Vec<String>> {
    document
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect())
        .collect()
}

#[test]
fn dependencies_are_those_that_the_architecture_draws() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |v: &serde_json::Value| v.as_str().unwrap_or_default().strip_prefix("fanin-").map(str::to_string);
    let mut actual: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let Some(package_name) = name(&package["name"]) else { continue };
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let uses = dependencies.filter(|d| d["kind"].is_null()).filter_map(|d| name(&d["name"])).collect();
        actual.insert(package_name, uses);
    }
    actual.remove("testkit");

    let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in table(&read("ARCHITECTURE.md")) {
        let allowed: BTreeSet<String> = if row[1].starts_with("all of the above") {
            drawn.keys().cloned().collect()
        } else {
            row[1].split(':').next().unwrap_or_default().split(',').map(|c| c.trim().to_string()).filter(|c| c != "–").collect()
        };
        drawn.insert(row[0].clone(), allowed);
    }
    assert_eq!(actual.keys().collect::<Vec<_>>(), drawn.keys().collect::<Vec<_>>(), "crates");
    for (krate, uses) in &actual {
        let forbidden: Vec<_> = uses.difference(&drawn[krate]).collect();
        assert!(forbidden.is_empty(), "{krate} depends on {forbidden:?}, which ARCHITECTURE.md does not draw");
    }
}

/// A `Source:` names a key of docs/papers.md, an RFC, an IEEE standard, or code that is known by its name.
#[test]
fn citations_resolve() {
    let keys: BTreeSet<String> = table(&read("docs/papers.md")).into_iter().map(|row| row[0].clone()).collect();
    let known = ["RFC", "IEEE", "Linux", "ns-2", "ns-3", "csg-htsim"];
    let mut cited = 0;
    let mut wrong = Vec::new();
    for path in all_sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let docs: Vec<&str> = text.lines().map(str::trim).collect();
        for (i, line) in docs.iter().enumerate() {
            let Some(at) = line.find("Source: ").filter(|_| line.starts_with("//")) else { continue };
            let mut rest = line[at + "Source: ".len()..].trim().to_string();
            if rest.is_empty() {
                rest = docs.get(i + 1).map_or(String::new(), |next| next.trim_start_matches('/').trim().to_string());
            }
            let first = rest.split([' ', ',', ';', '.', ':', '(']).next().unwrap_or_default();
            let ok = known.contains(&first) || keys.contains(first);
            if !ok {
                wrong.push(format!("{}:{}: '{first}' is no key of docs/papers.md: {rest}", path.display(), i + 1));
            }
            cited += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cited > 100, "only {cited} citations found");
}

#[test]
fn models_have_no_statics_and_only_one_crate_knows_python() {
    for path in all_sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let in_py = path.components().any(|c| c.as_os_str() == "py");
        for (i, line) in text.lines().map(str::trim_start).enumerate() {
            let here = || format!("{}:{}: {line}", path.display(), i + 1);
            assert!(
                !line.starts_with("static ") && !line.starts_with("pub static ") && !line.contains("thread_local!"),
                "{}",
                here()
            );
            assert!(in_py || !line.contains("pyo3::"), "{}", here());
        }
    }
}
