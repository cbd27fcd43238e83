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

/// The comments of a source: the line where each begins, and its text in one line. A comment behind code stands for itself.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
        let Some(at) = line.find("//").filter(|at| *at == 0 || line[..*at].ends_with(' ')) else {
            open = false;
            continue;
        };
        let words = line[at..].trim_start_matches(['/', '!']).trim();
        match found.last_mut().filter(|_| open && at == 0 && !words.is_empty()) {
            Some((_, comment)) => *comment = format!("{comment} {words}"),
            None => found.push((i, words.to_string())),
        }
        open = at == 0 && !words.is_empty();
    }
    found
}

/// What a comment cites: the first word of each source, of which there may be several after a `Source:`, set apart by semicolons.
///
/// What follows a semicolon may also go on with the sentence. It is a source when it begins as a name does, or with a section.
fn cited(comment: &str) -> Vec<String> {
    let word = |text: &str| text.split([' ', ',', ';', '.', ':', '(', ')']).next().unwrap_or_default().to_string();
    let mut keys = Vec::new();
    for (at, _) in comment.match_indices("Source:") {
        let rest = &comment[at + "Source:".len()..];
        // A full stop before a small letter or a digit is one of an abbreviation.
        let ends = |at: &usize| rest[at + 2..].starts_with(|c: char| c.is_uppercase());
        let sentence = &rest[..rest.match_indices(". ").map(|(at, _)| at).find(ends).unwrap_or(rest.len())];
        let mut depth = 0; // a semicolon in brackets parts nothing
        let parts = sentence.split(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ';' && depth == 0
        });
        for (i, part) in parts.map(str::trim).enumerate() {
            let named = part.starts_with(|c: char| c.is_ascii_uppercase());
            let section = part.split(' ').nth(1).is_some_and(|second| second.starts_with(['§', '(']) || second == "fig.");
            if i == 0 || named || section {
                keys.push(word(part));
            }
        }
    }
    keys
}

#[test]
fn sources_are_found_wherever_they_stand() {
    let text = "/// K. Source:\n/// dctcp §3.1; 65. As it is; more.\n///\n/// Source: RFC 1 (x); Linux a_b (x; Y); what is left; foo §3. No; Key.\n\
                let a = 1; // Source: RFC 2.\n// Source: PDN fig. 3;\n// NDP §2.\nlet url = \"http://x\";\n";
    let found: Vec<(usize, Vec<String>)> = comments(text).iter().map(|(line, text)| (*line, cited(text))).collect();
    let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            (1, keys(&["dctcp"])),
            (3, keys(&[])),
            (4, keys(&["RFC", "Linux", "foo"])),
            (5, keys(&["RFC"])),
            (6, keys(&["PDN", "NDP"])),
        ]
    );
}

/// A `Source:` names a key of docs/dev/citations.md, an RFC, an IEEE standard, or code that is known by its name.
#[test]
fn citations_resolve() {
    let keys: BTreeSet<String> = table(&read("docs/dev/citations.md")).into_iter().map(|row| row[0].clone()).collect();
    let known = ["RFC", "IEEE", "Linux", "ns-2", "ns-3", "csg-htsim", "goarista", "gnmic", "OpenConfig", "SONiC"];
    let mut count = 0;
    let mut wrong = Vec::new();
    for path in all_sources() {
        for (line, comment) in comments(&std::fs::read_to_string(&path).unwrap()) {
            for key in cited(&comment) {
                if !known.contains(&key.as_str()) && !keys.contains(&key) {
                    wrong.push(format!("{}:{line}: '{key}' is no key of docs/dev/citations.md: {comment}", path.display()));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "only {count} citations found");
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
