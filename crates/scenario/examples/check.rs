use fanin_scenario::{render, Scenario};
fn main() {
    for path in std::env::args().skip(1) {
        println!("##### {path}");
        match Scenario::load(std::path::Path::new(&path)) {
            Ok(s) => print!("ok {}\n{}", s.hash(), render(s.warnings(), "s.toml")),
            Err(p) => print!("{}", render(&p, "s.toml")),
        }
    }
}
