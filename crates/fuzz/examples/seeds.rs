//! Writes what fuzzing starts from: `seeds FOLDER` makes a folder for each target, and prints each with the longest input to try.

#[path = "../tests/seeds/mod.rs"]
mod seeds;

fn main() -> std::io::Result<()> {
    let root = std::path::PathBuf::from(std::env::args().nth(1).expect("seeds FOLDER"));
    for (target, inputs) in seeds::seeds() {
        let folder = root.join(target);
        std::fs::create_dir_all(&folder)?;
        for (i, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i}")), input)?;
        }
        println!("{target} {}", fanin_fuzz::target(target).expect(target).longest);
    }
    Ok(())
}
