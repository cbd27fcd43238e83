//! Sizes and arrivals have the distributions that they are asked to have.

use crate::common::{assert_problem, net};
use fanin_traffic::{published, Cdf, FlowSpec};
use fanin_units::{BitRate, Bytes};

const PUBLISHED: [&str; 5] = ["web-search", "data-mining", "enterprise", "hadoop", "storage"];

/// A quarter of a million flows of `sizes`.
fn many(sizes: &str) -> Vec<FlowSpec> {
    net(4, 4).flows(&format!("[[traffic]]\nkind = \"poisson\"\nper_second = 1e6\ncount = 250_000\nsizes = {sizes}"))
}

fn assert_follows(cdf: &Cdf, flows: &[FlowSpec]) {
    let mut sizes: Vec<u64> = flows.iter().map(|flow| flow.size).collect();
    sizes.sort_unstable();
    assert!(sizes[0] >= 1);
    let n = sizes.len() as f64;
    // Sizes are whole bytes: a draw x became round(x), so the empirical distribution may lead or lag by half a byte.
    let far = sizes.iter().enumerate().map(|(i, size)| {
        let (low, high) = (cdf.probability(*size as f64 - 0.5), cdf.probability(*size as f64 + 0.5));
        (i as f64 / n - high).max(low - (i + 1) as f64 / n)
    });
    // Kolmogorov–Smirnov: 1.95/√n is exceeded with probability 0.001.
    let distance = far.fold(0.0, f64::max);
    assert!(distance < 1.95 / libm::sqrt(n), "{distance}");
    let mean = sizes.iter().map(|size| *size as f64).sum::<f64>() / n;
    let deviation = libm::sqrt(sizes.iter().map(|size| (*size as f64 - mean) * (*size as f64 - mean)).sum::<f64>() / n);
    assert!((mean - cdf.mean()).abs() < 3.3 * deviation / libm::sqrt(n), "{mean} for {}", cdf.mean());
}

#[test]
fn sampled_sizes_follow_each_published_distribution() {
    for name in PUBLISHED {
        assert_follows(&Cdf::published(name).unwrap(), &many(&format!("\"{name}\"")));
    }
}

#[test]
fn the_means_are_those_of_the_piecewise_linear_form() {
    // Σ Δp·(x0 + x1)/2 by hand for two of them.
    let storage = 0.2293 * 2_000.0
        + 0.4628 * 6_000.0
        + 0.114 * 12_000.0
        + 0.0986 * 24_000.0
        + 0.0306 * 48_000.0
        + 0.0324 * 96_000.0
        + 0.0076 * 192_000.0
        + 0.0247 * 1_128_000.0;
    assert!((Cdf::published("storage").unwrap().mean() - storage).abs() < 1e-6);
    let web = 0.15 * 5e3
        + 0.05 * 15e3
        + 0.1 * 25e3
        + 0.1 * 40e3
        + 0.13 * 65e3
        + 0.07 * 140e3
        + 0.1 * 6e5
        + 0.1 * 1.5e6
        + 0.1 * 3.5e6
        + 0.07 * 7.5e6
        + 0.03 * 2e7;
    assert!((Cdf::published("web-search").unwrap().mean() - web).abs() < 1e-6);
    assert!((web - 1_711_250.0).abs() < 1e-6);
}

#[test]
fn an_atom_before_the_first_point_and_steps_count_in_the_mean() {
    let dir = scratch("atom");
    std::fs::write(dir.join("a.txt"), "1000 0.5\n2000 0.5\n2000 1\n").unwrap();
    let flows = net(1, 4)
        .dir(&dir)
        .flows("[[traffic]]\nkind = \"poisson\"\nper_second = 1000\ncount = 4000\nsizes = { kind = \"file\", path = \"a.txt\" }");
    let small = flows.iter().filter(|flow| flow.size == 1000).count();
    assert!(flows.iter().all(|flow| flow.size == 1000 || flow.size == 2000));
    assert!((small as f64 - 2000.0).abs() < 3.3 * libm::sqrt(1000.0), "{small}");
}

#[test]
fn the_percent_files_of_hpcc_give_the_same_flows_and_say_how_they_were_read() {
    let dir = scratch("percent");
    let percent: String = published("web-search")
        .unwrap()
        .lines()
        .filter_map(|line| {
            let (size, p) = line.split_once(',')?;
            Some(format!("{size} {}\n", p.parse::<f64>().ok()? * 100.0))
        })
        .collect();
    assert!(percent.ends_with("30000000 100\n"));
    std::fs::write(dir.join("WebSearch_distribution.txt"), percent).unwrap();
    let net = net(2, 2).dir(&dir);
    let text = |sizes: &str| format!("[[traffic]]\nkind = \"poisson\"\nper_second = 1000\ncount = 500\nsizes = {sizes}");
    let sizes = |flows: Vec<FlowSpec>| flows.iter().map(|flow| flow.size).collect::<Vec<_>>();
    let file = "{ kind = \"file\", path = \"WebSearch_distribution.txt\" }";
    let by_name = sizes(net.flows(&text("\"web-search\"")));
    let by_file = sizes(net.flows(&text(file)));
    assert!(by_name.iter().zip(&by_file).all(|(a, b)| a.abs_diff(*b) <= 1), "only the last digit of a percentage may differ");
    assert_eq!(
        net.build(&text(file)).notes(),
        ["poisson: WebSearch_distribution.txt ends at 100: read as percent; mean 1711250 bytes"]
    );
}

#[test]
fn three_columns_and_packets_are_pfabrics_form() {
    let dir = scratch("pfabric");
    std::fs::write(dir.join("cdf.tcl"), "6 1 0\n6 1 0.15\n13 1 0.2\n20000 1 1\n").unwrap();
    let sizes = "{ kind = \"file\", path = \"cdf.tcl\", unit = \"1460B\" }";
    let flows =
        net(1, 3).dir(&dir).flows(&format!("[[traffic]]\nkind = \"poisson\"\nper_second = 1000\ncount = 2000\nsizes = {sizes}"));
    let smallest = flows.iter().filter(|flow| flow.size == 6 * 1460).count() as f64;
    assert!((smallest - 300.0).abs() < 3.3 * libm::sqrt(255.0), "{smallest}");
}

#[test]
fn fixed_uniform_and_exponential_sizes_have_their_shapes() {
    assert!(many("{ kind = \"fixed\", size = \"5KB\" }").iter().all(|flow| flow.size == 5000));
    let uniform = many("{ kind = \"uniform\", min = \"1KB\", max = \"2KB\" }");
    assert!(uniform.iter().any(|f| f.size == 1000) && uniform.iter().any(|f| f.size == 2000));
    assert!(uniform.iter().all(|f| (1000..=2000).contains(&f.size)));
    let exponential = many("{ kind = \"exponential\", mean = \"10KB\" }");
    let mean = exponential.iter().map(|f| f.size as f64).sum::<f64>() / exponential.len() as f64;
    assert!((mean - 1e4).abs() < 3.3 * 1e4 / 500.0, "{mean}");
}

#[test]
fn offered_load_is_the_load_asked_for() {
    let rate = BitRate::from_gbps(10);
    let run = fanin_units::Span::from_s(2);
    for (sizes, load) in [("web-search", 0.6), ("storage", 0.3), ("hadoop", 0.8)] {
        let flows =
            net(4, 4).until_ms(2000).flows(&format!("[[traffic]]\nkind = \"poisson\"\nload = {load}\nsizes = \"{sizes}\""));
        let sum: f64 = flows.iter().map(|flow| flow.size as f64).sum();
        let squares: f64 = flows.iter().map(|flow| flow.size as f64 * flow.size as f64).sum();
        let capacity = 16.0 * rate.bytes_in(run).get() as f64;
        // A compound Poisson sum has the variance λ·E[S²], estimated by Σ S².
        let error = 3.3 * libm::sqrt(squares) / capacity;
        assert!((sum / capacity - load).abs() < error, "{sizes}: {} for {load} ± {error}", sum / capacity);
        assert!(error < 0.1 * load, "the test would see a tenth too much: {error}");
    }
}

#[test]
fn core_load_counts_bytes_between_racks_against_the_links_of_the_tors() {
    let net = net(4, 4).until_ms(1000);
    let core = net.core.unwrap();
    let flows = net.flows("[[traffic]]\nkind = \"poisson\"\nload = 0.5\nload_of = \"core\"\nsizes = \"storage\"");
    let rack = |host: fanin_units::HostId| host.0 / 4;
    let crossing: Vec<f64> = flows.iter().filter(|f| rack(f.src) != rack(f.dst)).map(|f| f.size as f64).collect();
    let capacity = core.bytes_in(fanin_units::Span::from_s(1)).get() as f64;
    let load = crossing.iter().sum::<f64>() / capacity;
    let error = 3.3 * libm::sqrt(crossing.iter().map(|s| s * s).sum::<f64>()) / capacity;
    assert!((load - 0.5).abs() < error && error < 0.02, "{load} ± {error}");
}

#[test]
fn core_load_counts_where_a_hot_spot_and_queries_send_their_bytes() {
    let net = net(4, 4).until_ms(1000);
    let rack = |host: fanin_units::HostId| host.0 / 4;
    let capacity = net.core.unwrap().bytes_in(fanin_units::Span::from_s(1)).get() as f64;
    for text in [
        // Half of all flows go to rack 0, from it and from elsewhere.
        "kind = \"hot_spot\"\nsizes = { kind = \"fixed\", size = \"20KB\" }\nhot = [\"rack:0\"]\nfraction = 0.5\nsources = [\"rack:0\", \"h4\"]",
        "kind = \"query\"\nclients = [\"h1\", \"h9\"]\nresponders = [\"rack:0\", \"h4..h6\"]\nsize = \"20KB\"",
    ] {
        let flows = net.flows(&format!("[[traffic]]\nload = 0.1\nload_of = \"core\"\n{text}"));
        let crossing = flows.iter().filter(|f| rack(f.src) != rack(f.dst)).count() as f64 * 20_000.0;
        let load = crossing / capacity;
        // 100 000 flows cross, up to seven of one query together.
        assert!((load - 0.1).abs() < 3.3 * 0.1 * libm::sqrt(7.0 / 1e5), "{load}: {text}");
    }
}

#[test]
fn query_load_fills_the_links_of_the_clients() {
    let net = net(2, 4).until_ms(2000);
    let flows = net.flows("[[traffic]]\nkind = \"query\"\nclients = [\"h1\"]\ntotal = \"100KB\"\nload = 0.4");
    let bytes: u64 = flows.iter().map(|flow| flow.size).sum();
    let load = bytes as f64 / BitRate::from_gbps(10).bytes_in(fanin_units::Span::from_s(2)).get() as f64;
    let queries = bytes as f64 / Bytes(100_000).get() as f64;
    assert!((load - 0.4).abs() < 3.3 * 0.4 / libm::sqrt(queries), "{load}");
}

#[test]
fn inter_arrival_times_are_exponential_and_sources_and_destinations_uniform() {
    let flows = net(4, 4).flows(
        "[[traffic]]\nkind = \"poisson\"\nper_second = 1e6\ncount = 200_000\nsizes = { kind = \"fixed\", size = \"1KB\" }",
    );
    let n = flows.len() as f64;
    let mut gaps: Vec<f64> = flows.windows(2).map(|w| w[1].start.since(w[0].start).as_secs_f64() * 1e6).collect();
    gaps.sort_by(f64::total_cmp);
    let distance =
        gaps.iter().enumerate().map(|(i, gap)| ((1.0 - libm::exp(-gap)) - (i as f64 + 0.5) / n).abs()).fold(0.0, f64::max);
    assert!(distance < 1.95 / libm::sqrt(n), "{distance}");
    let mut pairs = vec![0u32; 256];
    flows.iter().for_each(|flow| pairs[flow.src.index() * 16 + flow.dst.index()] += 1);
    let expected = n / 240.0;
    let chi: f64 = pairs
        .iter()
        .enumerate()
        .filter(|(i, _)| i / 16 != i % 16)
        .map(|(_, c)| (f64::from(*c) - expected) * (f64::from(*c) - expected) / expected)
        .sum();
    // χ² with 239 degrees of freedom: 311 is exceeded with probability 0.001.
    assert!(chi < 311.0, "{chi}");
    assert!((0..16).all(|i| pairs[i * 17] == 0), "nobody sends to itself");
}

#[test]
fn locality_is_the_probability_asked_for() {
    let rack = |host: fanin_units::HostId| host.0 / 4;
    for local in [0.0, 0.25, 1.0] {
        let flows = net(4, 4).flows(&format!(
            "[[traffic]]\nkind = \"poisson\"\nper_second = 1e6\ncount = 20_000\nintra_rack = {local:?}\nsizes = {{ kind = \"fixed\", size = \"1KB\" }}"
        ));
        let near = flows.iter().filter(|f| rack(f.src) == rack(f.dst)).count() as f64 / 2e4;
        assert!((near - local).abs() <= 3.3 * libm::sqrt(local * (1.0 - local) / 2e4), "{near} for {local}");
        assert!(flows.iter().all(|f| f.src != f.dst));
    }
}

#[test]
fn a_hot_spot_draws_its_fraction() {
    let text =
        "[[traffic]]\nkind = \"hot_spot\"\nper_second = 1e6\ncount = 40_000\nsizes = { kind = \"fixed\", size = \"1KB\" }\n";
    let counts = |extra: &str| {
        let mut counts = vec![0u32; 64];
        net(8, 8).flows(&format!("{text}{extra}")).iter().for_each(|flow| counts[flow.dst.index()] += 1);
        counts
    };
    let listed = counts("hot = [\"h3\", \"h9\"]\nfraction = 0.5");
    let share = f64::from(listed[3] + listed[9]) / 4e4;
    // Half of all flows, and 2 of 64 hosts' part of the other half.
    assert!((share - (0.5 + 0.5 * 2.0 / 64.0)).abs() < 0.01, "{share}");
    let mut drawn = counts("");
    drawn.sort_unstable();
    let hot: u32 = drawn[56..].iter().sum();
    assert!((f64::from(hot) / 4e4 - (0.15 + 0.85 / 8.0)).abs() < 0.015, "an eighth of the hosts, 15 % of the flows: {hot}");
}

#[test]
fn bad_distribution_files_are_refused_with_line_and_reason() {
    let dir = scratch("bad");
    let problems = |content: &str, extra: &str| {
        std::fs::write(dir.join("cdf.txt"), content).unwrap();
        net(1, 3).dir(&dir).problems(&format!(
            "[[traffic]]\nkind = \"poisson\"\nper_second = 10\ncount = 5\nsizes = {{ kind = \"file\", path = \"cdf.txt\"{extra} }}"
        ))
    };
    let at = "traffic[0].sizes.path (cdf.txt), line ";
    assert_problem(
        &problems("0 0\n10 0.5\n20 0.4\n30 1\n", ""),
        &format!("{at}3: \"0.4\" is a smaller probability than the 0.5 before it; accepted: probabilities that never decrease"),
    );
    assert_problem(&problems("0 0\n10 0.5\n5 1\n", ""), &format!("{at}3: \"5\" is a smaller size than the 10 before it"));
    assert_problem(
        &problems("0 0\n10 0.9\n", ""),
        &format!("{at}2: \"0.9\" is not where a distribution ends; accepted: 1 (fractions) or 100 (percent)"),
    );
    assert_problem(
        &problems("0 0\n10 1\n", ", probability = \"percent\""),
        &format!("{at}2: \"1\" is not where a distribution ends; accepted: 100"),
    );
    assert_problem(&problems("-5 0\n10 1\n", ""), &format!("{at}1: \"-5\" is negative"));
    assert_problem(
        &problems("0 0\n# a comment\n\n10 x\n", ""),
        &format!("{at}4: \"x\" is not a number; accepted: a number of at least 0"),
    );
    assert_problem(
        &problems("0 0\n10 0.5 0.7 1\n20 1", ""),
        &format!("{at}2: \"10 0.5 0.7 1\" is not a point of a distribution; accepted: SIZE PROBABILITY"),
    );
    assert_problem(&problems("0 0\n0 1\n", ""), &format!("{at}2: \"0\" is not a size for the largest flow"));
    assert_problem(&problems("10 1\n", ""), "traffic[0].sizes.path: \"cdf.txt\" has 1 points; accepted: at least 2 points");
    assert_problem(&problems("inf 0\nnan 1\n", ""), &format!("{at}2: \"nan\" is not a number"));
    assert_eq!(problems("0 0\n5 0.5 0 0\nx 0.6\n20 0.5\n", "").len(), 2, "all lines at once");
    std::fs::remove_file(dir.join("cdf.txt")).unwrap();
    let missing = net(1, 3)
        .dir(&dir)
        .problems("[[traffic]]\nkind = \"poisson\"\nper_second = 10\ncount = 5\nsizes = { kind = \"file\", path = \"cdf.txt\" }");
    assert_problem(&missing, "traffic[0].sizes.path: \"cdf.txt\" cannot be read: No such file or directory");
}

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
