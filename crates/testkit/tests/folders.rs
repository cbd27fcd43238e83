//! Arrows between the modules of a crate form no circle: each is a layer, as crates are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates with fewer lines are small enough to be read as a whole.
const LARGE: usize = 5_000;

/// Arrows of circles that are still there, by crate: none may come, and one that has gone is struck out here.
const KNOWN: [(&str, &[&str]); 5] = [
    (
        "scenario",
        &[
            "check → doc",
            "check → pauses",
            "check → sections",
            "doc → sections",
            "generate → doc",
            "generate → sections",
            "pauses → scenario",
            "scenario → check",
            "scenario → doc",
            "scenario → generate",
            "scenario → sections",
            "sections → pauses",
        ],
    ),
    ("sim", &["core → fabric", "fabric → core", "run → world", "world → run"]),
    (
        "switch",
        &[
            "config → except",
            "config → marking",
            "config → mechanism",
            "except → marking",
            "except → mechanism",
            "marking → config",
            "marking → except",
            "mechanism → config",
        ],
    ),
    ("traffic", &["collective → generate", "entry → import", "generate → collective", "import → entry"]),
    (
        "transport",
        &[
            "cc → config",
            "config → cc",
            "config → endpoint",
            "config → transport",
            "endpoint → cc",
            "endpoint → config",
            "endpoint → rtt",
            "endpoint → signals",
            "endpoint → snapshot",
            "endpoint → transport",
            "rtt → config",
            "signals → endpoint",
            "snapshot → endpoint",
            "transport → signals",
            "transport → snapshot",
        ],
    ),
];

fn crates() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.join("src/lib.rs").is_file());
    found.sort();
    found
}

/// Rust sources below a folder, by their path in it.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push((path.strip_prefix(folder).unwrap().to_path_buf(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The path of modules that a file is, by its path below `src`.
fn modules(file: &Path) -> Vec<String> {
    let mut path: Vec<String> = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

/// The text without comments and without what is compiled for tests only, and the modules that are test files.
fn code(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut test_files) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.split("//").next().unwrap_or_default();
        if code.trim() != "#[cfg(test)]" {
            kept.extend([code, "\n"]);
            continue;
        }
        let next = lines.by_ref().find(|line| !line.trim_start().starts_with("#[")).unwrap_or_default();
        if let Some(name) = next.trim().strip_suffix(';').and_then(|next| next.rsplit_once("mod ")) {
            test_files.push(name.1.to_string());
        }
        // An item ends where its indentation comes again.
        let indent = next.len() - next.trim_start().len();
        if next.trim_end().ends_with(['{', '(']) {
            lines.by_ref().find(|line| line.starts_with(&format!("{}}}", " ".repeat(indent))));
        }
    }
    (kept, test_files)
}

fn name(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// First names of what a path names behind its `crate::` or `super::`, of which there may be several in braces.
fn first_names(rest: &str) -> Vec<&str> {
    let Some(inner) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut begin, mut names) = (0, true, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begin = true,
            c if begin && !c.is_whitespace() => {
                names.push(name(&inner[at..]));
                begin = false;
            }
            _ => {}
        }
    }
    names
}

/// Names that code takes from the root of its crate: modules, and what the root hands on.
fn from_root(code: &str, depth: usize) -> Vec<&str> {
    let mut found: Vec<&str> =
        code.match_indices("crate::").flat_map(|(at, word)| first_names(&code[at + word.len()..])).collect();
    let up = "super::".repeat(depth);
    for (at, _) in code.match_indices(&up) {
        let rest = &code[at + up.len()..];
        if !code[..at].ends_with("::") && !rest.starts_with("super::") {
            found.extend(first_names(rest));
        }
    }
    found
}

/// Names that the root of a crate hands on, with the module that each is from.
fn handed_on(root: &str, files: &[(PathBuf, String)]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (at, _) in root.match_indices("use ") {
        let statement = &root[at + 4..at + root[at..].find(';').map_or(4, |end| end)];
        let module = name(statement).to_string();
        if statement.ends_with('*') {
            let inside = |file: &&(PathBuf, String)| modules(&file.0).first() == Some(&module);
            for (_, text) in files.iter().filter(inside) {
                for (at, _) in text.match_indices("pub ") {
                    let words: Vec<&str> = text[at + 4..].split_whitespace().take(2).collect();
                    if let ["struct" | "enum" | "trait" | "fn" | "const" | "type", item] = words[..] {
                        found.insert(name(item).to_string(), module.clone());
                    }
                }
            }
        }
        let words = statement.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        found.extend(words.skip(1).map(|word| (word.to_string(), module.clone())));
    }
    found
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Which top-level module of a crate uses which.
fn arrows(src: &Path) -> Arrows {
    let files = sources(src);
    let mut skipped: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut codes = Vec::new();
    for (file, text) in &files {
        let (code, test_files) = code(text);
        let path = modules(file);
        skipped.extend(test_files.into_iter().map(|test| [&path[..], &[test]].concat()));
        codes.push((path, code));
    }
    let root = codes.iter().find(|(path, _)| path.is_empty()).map_or("", |(_, code)| code);
    let tops: BTreeSet<&String> = codes.iter().filter_map(|(path, _)| path.first()).collect();
    let exports = handed_on(root, &files);
    let mut found = Arrows::new();
    for (path, code) in &codes {
        let Some(top) = path.first() else { continue };
        if skipped.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let uses = found.entry(top.clone()).or_default();
        for used in from_root(code, path.len()) {
            let module = if tops.contains(&used.to_string()) { Some(used) } else { exports.get(used).map(String::as_str) };
            uses.extend(module.filter(|module| module != top).map(str::to_string));
        }
    }
    found
}

/// The modules that one leads to.
fn reached(arrows: &Arrows, from: &str) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.to_string()]);
    while let Some(next) = open.pop() {
        for to in arrows.get(&next).into_iter().flatten() {
            if found.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    found
}

/// Arrows that lead back to where they come from.
fn circles(arrows: &Arrows) -> BTreeSet<String> {
    let all = arrows.iter().flat_map(|(from, uses)| uses.iter().map(move |to| (from, to)));
    all.filter(|(from, to)| reached(arrows, to).contains(*from)).map(|(from, to)| format!("{from} → {to}")).collect()
}

#[test]
fn modules_of_large_crates_are_layers() {
    let known: BTreeMap<&str, &[&str]> = KNOWN.into_iter().collect();
    let (mut large, mut wrong) = (Vec::new(), String::new());
    for path in crates() {
        let krate = path.file_name().unwrap().to_string_lossy().into_owned();
        let lines: usize = sources(&path.join("src")).iter().map(|(_, text)| text.lines().count()).sum();
        if krate == "testkit" || lines <= LARGE {
            continue;
        }
        let found = circles(&arrows(&path.join("src")));
        let expected: BTreeSet<String> =
            known.get(krate.as_str()).into_iter().copied().flatten().map(ToString::to_string).collect();
        let (new, gone): (Vec<_>, Vec<_>) = (found.difference(&expected).collect(), expected.difference(&found).collect());
        if !new.is_empty() {
            wrong += &format!("{krate}: these arrows are of a circle: {new:#?}\n");
        }
        if !gone.is_empty() {
            wrong += &format!("{krate}: these arrows are of no circle any more, so KNOWN should not have them: {gone:#?}\n");
        }
        large.push(krate);
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(large.len() >= 5, "only {large:?} are large");
    let strangers: Vec<_> = known.keys().filter(|krate| !large.contains(&(**krate).to_string())).collect();
    assert!(strangers.is_empty(), "KNOWN names {strangers:?}, which are no large crates");
}

#[test]
fn arrows_are_found_however_they_are_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("folders");
    let _ = std::fs::remove_dir_all(&folder);
    for (file, text) in [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\npub use c::{Deep, inner::Other};\npub use d::*;\n"),
        ("a.rs", "use super::{b, c::{self, Deep}};\nfn f() { $crate::e::g() }\n"),
        ("b/mod.rs", "mod x;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more {\n    use crate::a::f;\n}\nuse crate::Other;\n"),
        ("b/x.rs", "use super::y; // use crate::a\nfn f(of: super::super::e::E) {}\n"),
        ("b/tests.rs", "use crate::a::f;\n"),
        ("c.rs", "use crate::{Star, Nowhere};\n"),
        ("d.rs", "pub struct Star;\n"),
        ("e.rs", "use crate::e::{self};\n"),
    ] {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found = arrows(&folder);
    let uses = |module: &str| found[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((uses("a"), uses("b"), uses("c")), (vec!["b", "c", "e"], vec!["c", "e"], vec!["d"]));
    assert_eq!((uses("d"), uses("e")), (vec![], vec![]));
    assert!(circles(&found).is_empty());
    std::fs::write(folder.join("d.rs"), "pub struct Star(crate::b::X);\n").unwrap();
    assert_eq!(Vec::from_iter(circles(&arrows(&folder))), ["b → c", "c → d", "d → b"]);
}
