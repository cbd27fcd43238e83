//! Doc comments are understood where an editor shows them alone.

use std::path::Path;

/// Beginnings of a first sentence that leans on the item above it, or asks instead of naming the item.
#[rustfmt::skip]
const LEANING: &[&str] = &[
    "What", "Whether", "The same", "Those", "Both", "That", "It", "Its", "They", "Their", "How", "When", "Where", "Who", "Whose",
    "Which", "Why", "See", "As", "Of", "Since when", "From when", "From now on", "For how long", "By how", "In which", "On which",
    "So many", "Such", "Something", "Nobody", "The one", "The others", "The rest", "All of them", "All of it", "Also",
    "And", "Else", "…",
];

/// Lines of a source that test modules occupy, which are no documentation.
fn in_tests(lines: &[&str]) -> Vec<bool> {
    let mut inside = vec![false; lines.len()];
    let mut i = 0;
    while i < lines.len() {
        let indent = lines[i].len() - lines[i].trim_start().len();
        let module = lines.get(i + 1).is_some_and(|next| next.trim_start().starts_with("mod ") && next.ends_with('{'));
        if lines[i].trim() == "#[cfg(test)]" && module {
            let close = format!("{}}}", " ".repeat(indent));
            let length = lines[i..].iter().position(|line| *line == close).expect("a module that closes");
            inside[i..=i + length].fill(true);
            i += length;
        }
        i += 1;
    }
    inside
}

/// True if a doc comment with this first line leans on another sentence.
fn leans(first: &str) -> bool {
    LEANING.iter().any(|word| {
        let rest = first.strip_prefix(word);
        rest.is_some_and(|rest| rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '-' && next != '_'))
    })
}

/// Line numbers, from 1, at which doc comments outside tests begin with one of [`LEANING`].
fn leaning(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let doc = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(|rest| rest.trim_start().to_string())
    };
    let inside = in_tests(&lines);
    let begins = |i: &usize| !inside[*i] && (*i == 0 || doc(lines[*i - 1]).is_none());
    (0..lines.len()).filter(begins).filter(|i| doc(lines[*i]).is_some_and(|first| leans(&first))).map(|i| i + 1).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name == "tests.rs" || name.ends_with("_tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn visit(folder: &Path, each: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, each);
        } else if path.extension().is_some_and(|e| e == "rs") {
            each(&path);
        }
    }
}

#[test]
fn first_sentences_stand_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let (mut places, mut seen) = (Vec::new(), 0);
    visit(&crates, &mut |path| {
        let inner = path.strip_prefix(&crates).unwrap();
        if inner.components().nth(1).is_some_and(|part| part.as_os_str() == "src") && !is_test(inner) {
            seen += 1;
            let text = std::fs::read_to_string(path).unwrap();
            places.extend(leaning(&text).into_iter().map(|line| format!("{}:{line}", inner.display())));
        }
    });
    assert!(seen > 200, "only {seen} sources were read");
    assert!(
        places.is_empty(),
        "doc comments begin with one of {LEANING:?}; name the item and say what it is or does:\n  {}",
        places.join("\n  ")
    );
}

#[test]
fn leaning_sentences_are_found_and_others_are_not() {
    let text =
        "//! What it is.\n\n/// Whether it is open.\nfn a() {}\n/// Sum of both.\n/// What follows.\nfn b() {}\n    /// It.\n\
                /// Itself.\n\n/// Item of a list.\n/// As-is copy.\nfn c() {}\n/// The samedi.\n\n/// The same as above.\n\
                #[cfg(test)]\nmod tests {\n    /// What is tested.\n    fn d() {}\n}\n/// Both.\nfn e() {}\n/// So many.\nfn f() {}\n/// So much.\nfn g() {}\n";
    assert_eq!(leaning(text), [1, 3, 8, 16, 22, 24]);
}
