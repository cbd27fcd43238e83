use super::*;
use fanin_params::{Cx, Param, Value};
use fanin_units::{HostId, Purpose, Span};
use proptest::prelude::*;

fn rng() -> Stream {
    Stream::new(3, Purpose::Spraying, 0)
}

/// So many links whose queues are empty.
impl Links for usize {
    fn count(&self) -> usize {
        *self
    }

    fn number(&self, i: usize) -> u32 {
        i as u32
    }

    fn queue(&mut self, _i: usize) -> PortView {
        crate::tests::view(0)
    }
}

fn packet(hash: u32, dst: u32) -> Envelope {
    let mut p = Envelope::default();
    (p.hash, p.dst) = (hash, HostId(dst));
    p
}

fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|n| (f64::from(*n) - expected) * (f64::from(*n) - expected) / expected).sum()
}

/// Flows as hosts make them: few addresses, ports that count up.
fn flows(n: u32) -> impl Iterator<Item = u32> {
    (0..n).map(|i| five_tuple_hash(i % 16, 64 + i % 7, (10_000 + i / 112) as u16, 5_001, 6))
}

#[test]
fn ecmp_spreads_flows_evenly_over_any_number_of_links() {
    // 0.1 % quantiles of chi-square with n − 1 degrees of freedom.
    for (n, limit) in [(2usize, 10.8), (3, 13.8), (4, 16.3), (8, 24.3), (16, 37.7)] {
        let mut counts = vec![0; n];
        flows(16_000).for_each(|hash| counts[ecmp(hash, 0x5eed_1234, n)] += 1);
        assert!(chi_square(&counts) < limit, "{n}: {counts:?}");
    }
}

/// Flows from one edge switch of a fat tree with k = 8 over the 16 core switches: four choices at the edge, then four at the
/// chosen aggregation switch.
fn cores(seeds: [u32; 5]) -> [u32; 16] {
    let mut counts = [0; 16];
    for hash in flows(16_000) {
        let agg = ecmp(hash, seeds[0], 4);
        counts[4 * agg + ecmp(hash, seeds[1 + agg], 4)] += 1;
    }
    counts
}

#[test]
fn the_layers_of_a_fat_tree_choose_unrelatedly() {
    for run in 0..20 {
        let mut seeds = Stream::new(run, Purpose::Hashing, 0);
        let counts = cores([0; 5].map(|_| seeds.next_u32()));
        assert!(chi_square(&counts) < 44.0, "seed {run}: {counts:?}"); // 1e-4 at 15 degrees of freedom
    }
    // Switches with equal seeds would polarise: the test detects it.
    assert_eq!(cores([9; 5]).iter().filter(|n| **n > 0).count(), 4);
}

#[test]
fn seeds_that_differ_in_one_bit_choose_unrelatedly() {
    for bit in 0..32 {
        let mut counts = [0; 16];
        flows(8_000).for_each(|hash| counts[4 * ecmp(hash, 77, 4) + ecmp(hash, 77 ^ 1 << bit, 4)] += 1);
        assert!(chi_square(&counts) < 48.0, "bit {bit}: {counts:?}"); // 32 looks at 15 degrees of freedom
    }
}

#[test]
fn both_directions_and_neighbouring_ports_hash_apart() {
    let forth = five_tuple_hash(1, 2, 10_000, 80, 6);
    assert_ne!(forth, five_tuple_hash(2, 1, 80, 10_000, 6));
    for other in
        [five_tuple_hash(1, 2, 10_001, 80, 6), five_tuple_hash(1, 2, 10_000, 81, 6), five_tuple_hash(1, 2, 10_000, 80, 17)]
    {
        assert!((8..=24).contains(&(forth ^ other).count_ones()), "{:032b}", forth ^ other);
    }
}

#[test]
fn a_flow_keeps_its_path_under_ecmp_and_leaves_it_under_spraying() {
    let paths = |kind: PathChoice| {
        let mut chooser = PathChooser::new(&kind);
        let mut rng = rng();
        (0..4_000u64).map(|i| chooser.pick(Time::from_ps(i), &packet(5, 1), &mut 4, 9, &mut rng)).collect::<Vec<_>>()
    };
    let fixed = paths(PathChoice::Ecmp(Ecmp {}));
    assert!(fixed.iter().all(|p| *p == fixed[0]));
    let sprayed = paths(PathChoice::Spray(Spray {}));
    let counts: Vec<u32> = (0..4).map(|p| sprayed.iter().filter(|x| **x == p).count() as u32).collect();
    assert!(chi_square(&counts) < 16.3, "{counts:?}");
}

#[test]
fn round_robin_takes_links_in_turn_for_each_destination() {
    let mut chooser = PathChooser::new(&PathChoice::RoundRobin(RoundRobinParams {}));
    let mut rng = rng();
    let mut pick = |dst| chooser.pick(Time::ZERO, &packet(5, dst), &mut 3, 9, &mut rng);
    // Two destinations in alternation: each still visits all three links in turn.
    let pairs: Vec<(usize, usize)> = (0..9).map(|_| (pick(1), pick(1_000))).collect();
    for w in pairs.windows(2) {
        assert_eq!((w[1].0, w[1].1), ((w[0].0 + 1) % 3, (w[0].1 + 1) % 3));
    }
}

#[test]
fn tables_by_destination_lead_all_flows_to_a_host_over_one_link_and_hosts_over_all() {
    let mut chooser = PathChooser::new(&PathChoice::ByDestination(ByDestinationParams {}));
    let mut rng = rng();
    let mut pick = |hash, dst, seed| chooser.pick(Time::ZERO, &packet(hash, dst), &mut 3, seed, &mut rng);
    assert!((0..50).all(|i| pick(i * 77, 7, i) == 1), "whatever the flow and the switch");
    assert_eq!([0, 1, 2, 3, 4].map(|dst| pick(5, dst, 9)), [0, 1, 2, 0, 1]);
    assert_eq!(chooser.foresee(HostId(7), 5, 3, 9), Some(1));
}

#[test]
fn a_flowlet_keeps_its_path_until_the_flow_pauses_for_longer_than_the_gap() {
    let gap = Span::from_us(100);
    let mut chooser = PathChooser::new(&PathChoice::Flowlet(FlowletParams { gap, entries: 1024 }));
    let (mut rng, mut now) = (rng(), Time::ZERO);
    let mut paths = Vec::new();
    for _ in 0..300 {
        let path = chooser.pick(now, &packet(5, 1), &mut 8, 9, &mut rng);
        for _ in 0..5 {
            now += gap;
            assert_eq!(chooser.pick(now, &packet(5, 1), &mut 8, 9, &mut rng), path, "a pause of just the gap changes nothing");
        }
        paths.push(path);
        now += gap + Span::from_ps(1);
    }
    let counts: Vec<u32> = (0..8).map(|p| paths.iter().filter(|x| **x == p).count() as u32).collect();
    assert!(chi_square(&counts) < 24.3, "{counts:?}");
}

proptest! {
    #[test]
    fn every_policy_picks_one_of_n(picks in prop::collection::vec((any::<u32>(), 0..2_000u32, 1..200usize, any::<u32>(), 0..1u64 << 40), 1..100)) {
        for kind in PathChoice::KINDS {
            let choice = PathChoice::parse(&Value::Text(kind.to_string()).into(), &mut Cx::new()).expect("defaults");
            let (mut chooser, mut rng, mut now) = (PathChooser::new(&choice), rng(), Time::ZERO);
            for (hash, dst, n, seed, later) in &picks {
                now += Span::from_ps(*later);
                prop_assert!(chooser.pick(now, &packet(*hash, *dst), &mut n.clone(), *seed, &mut rng) < *n);
            }
        }
    }
}
