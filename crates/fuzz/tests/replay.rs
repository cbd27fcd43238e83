//! What the fuzzer starts from, what it has found so far, and a little damage, in seconds: the short form of `make fuzz`.

mod seeds;

use fanin_fuzz::{target, TARGETS};
use std::path::Path;

/// Runs an input; a failure says which it was.
fn run(name: &str, input: &[u8], what: &str) {
    let target = target(name).expect(name);
    if std::panic::catch_unwind(|| (target.run)(input)).is_err() {
        let path = std::env::temp_dir().join(format!("fanin-fuzz-{name}"));
        std::fs::write(&path, input).expect("a file");
        panic!("{name}: {what} does not hold; it is in {}", path.display());
    }
}

/// Each target has something that it accepts to start from, and no seed is longer than what is tried.
#[test]
fn seeds_hold() {
    let seeds = seeds::seeds();
    assert_eq!(seeds.keys().count(), TARGETS.len());
    for (name, inputs) in &seeds {
        let longest = target(name).expect(name).longest;
        for (i, input) in inputs.iter().enumerate() {
            assert!(input.len() <= longest, "{name} {i}: {} B", input.len());
            run(name, input, &format!("seed {i}"));
        }
    }
    assert!(seeds["notification"].len() > 3 && seeds["frame"].len() > 50);
}

/// What was found once stays mended.
#[test]
fn what_was_found_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    for folder in std::fs::read_dir(root).into_iter().flatten() {
        let folder = folder.expect("an entry").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        for file in std::fs::read_dir(&folder).expect("a folder") {
            let path = file.expect("an entry").path();
            run(&name, &std::fs::read(&path).expect("a file"), &path.display().to_string());
        }
    }
}

#[test]
fn damaged_seeds_hold() {
    let mut state = 11_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for (name, inputs) in seeds::seeds() {
        for turn in 0..400 {
            let mut input = inputs[next() % inputs.len()].clone();
            for _ in 0..1 + turn % 4 {
                let at = next() % input.len();
                match next() % 4 {
                    0 => input.truncate(at + 1),
                    1 => {
                        input.insert(at, next() as u8);
                    }
                    _ => input[at] = next() as u8,
                }
            }
            run(name, &input, &format!("damage {turn}"));
        }
    }
}
