//! Temporary.
use crate::common::*;
#[test]
fn play_files() {
    let Ok(dir) = std::env::var("RCM_DIR") else { return };
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    names.sort();
    for name in names {
        let text = std::fs::read_to_string(&name).unwrap();
        let mut world = make(&text);
        while let fanin_sim::Pause::Budget = world.advance(1 << 20).unwrap() {}
        let (summary, _) = fanin_sim::finish(&mut world).unwrap();
        let totals = world.totals();
        let kept = world.into_kept().unwrap();
        let mut line = String::new();
        for f in &kept.flows {
            let end = f.finish_ps.unwrap_or(f.start_ps);
            line += &format!(" {}:{:.1}", f.group, f.delivered_bytes as f64 * 8000.0 / (end - f.start_ps).max(1) as f64);
            if f.reordered > 0 {
                line += &format!("(r{})", f.reordered);
            }
        }
        println!("== {} dropped {}{}", name.file_stem().unwrap().to_string_lossy(), totals.dropped, line);
        if std::env::var("RCM_MORE").is_ok() {
            println!("   rcm {}", summary["mechanisms"]["rcm"]);
            println!("   pfc {}", summary["mechanisms"]["pfc"]);
            for row in kept.states.iter().filter(|r| r.about.to_string() == "output").take(60) {
                println!("   {} {} {} {}", row.time_ps / 1000, row.port, row.state, row.degree);
            }
        }
    }
}
