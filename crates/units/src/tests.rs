use super::*;
use proptest::prelude::*;

#[test]
fn serialisation_is_exact_at_every_common_rate() {
    for (rate, ps_per_byte) in [
        ("10Mbps", 800_000),
        ("100Mbps", 80_000),
        ("1Gbps", 8_000),
        ("2.5Gbps", 3_200),
        ("10Gbps", 800),
        ("25Gbps", 320),
        ("40Gbps", 200),
        ("50Gbps", 160),
        ("100Gbps", 80),
        ("200Gbps", 40),
        ("400Gbps", 20),
        ("800Gbps", 10),
        ("1.6Tbps", 5),
    ] {
        let rate = BitRate::read(rate).unwrap();
        for size in [1u32, 64, 84, 1538, 9038, 65_535] {
            assert_eq!(WireClock::new(rate).tx(size).ps(), u64::from(size) * ps_per_byte, "{rate}");
        }
    }
}

#[test]
fn serialisation_rounds_up_where_it_cannot_be_exact() {
    // 56 Gb/s: 142.857… ps a byte.
    assert_eq!(WireClock::new(BitRate::from_gbps(56)).tx(1).ps(), 143);
    assert_eq!(WireClock::new(BitRate::from_gbps(56)).tx(7).ps(), 1000);
}

#[test]
fn quantities_are_read_exactly() {
    assert_eq!(Span::read("1.5us").unwrap(), Span::from_ns(1500));
    assert_eq!(Span::read("10 ms").unwrap(), Span::from_ms(10));
    assert_eq!(Bytes::read("512KB").unwrap(), Bytes(512_000));
    assert_eq!(Bytes::read("64KiB").unwrap(), Bytes(65_536));
    assert_eq!(BitRate::read("10 Gb/s").unwrap(), BitRate::from_gbps(10));
    assert_eq!(Amount::read("65 packets").unwrap(), Amount::Packets(65));
    assert_eq!(Amount::read("20_000 cells").unwrap(), Amount::Cells(20_000));
    assert_eq!(Amount::read("2KB").unwrap(), Amount::Bytes(2_000));
}

#[test]
fn bad_quantities_are_refused_with_the_reason() {
    assert_eq!(Span::read("10"), Err(QuantityError::MissingUnit));
    assert_eq!(Span::read("10Gbps"), Err(QuantityError::UnknownUnit("Gbps".into())));
    assert_eq!(Span::read("-1us"), Err(QuantityError::Syntax));
    assert_eq!(Span::read("0.5ps"), Err(QuantityError::TooFine));
    assert_eq!(Span::read("99999999999s"), Err(QuantityError::TooLarge));
    assert_eq!(Span::read("1.2.3s"), Err(QuantityError::Syntax));
    assert_eq!(Span::read(""), Err(QuantityError::Syntax));
    assert_eq!(Span::read("."), Err(QuantityError::Syntax));
}

#[test]
fn streams_of_different_entities_and_purposes_are_unrelated() {
    let draws = |purpose, entity| {
        let mut s = Stream::new(7, purpose, entity);
        (0..64).map(|_| s.next_u64()).collect::<Vec<_>>()
    };
    assert_ne!(draws(Purpose::Sizes, 1), draws(Purpose::Sizes, 2));
    assert_ne!(draws(Purpose::Sizes, 1), draws(Purpose::Arrivals, 1));
    assert_eq!(draws(Purpose::Sizes, 1), draws(Purpose::Sizes, 1));
}

#[test]
fn exponential_and_uniform_have_their_means() {
    let mut s = Stream::new(1, Purpose::Arrivals, 0);
    let n = 200_000;
    let mean = (0..n).map(|_| s.exponential(3.0)).sum::<f64>() / f64::from(n);
    assert!((mean - 3.0).abs() < 0.03, "{mean}"); // 4.5 standard errors
    let mean = (0..n).map(|_| s.below(10) as f64).sum::<f64>() / f64::from(n);
    assert!((mean - 4.5).abs() < 0.03, "{mean}");
}

proptest! {
    #[test]
    fn written_quantities_are_read_back(ps in any::<u64>()) {
        prop_assert_eq!(Span::read(&Span::from_ps(ps).to_string()).unwrap(), Span::from_ps(ps));
        prop_assert_eq!(Bytes::read(&Bytes(ps).to_string()).unwrap(), Bytes(ps));
        prop_assert_eq!(BitRate::read(&BitRate(ps).to_string()).unwrap(), BitRate(ps));
    }

    #[test]
    fn tx_is_never_short_and_never_a_picosecond_too_long(rate in 1u64..2_000_000_000_000, size in 1u32..65_536) {
        let ps = u128::from(WireClock::new(BitRate(rate)).tx(size).ps());
        let exact_num = u128::from(size) * 8_000_000_000_000;
        prop_assert!(ps * u128::from(rate) >= exact_num);
        prop_assert!((ps - 1) * u128::from(rate) < exact_num);
    }
}

#[test]
fn classes_are_bits_of_a_set_and_index_tables() {
    let set = 0b1010_0001;
    let there: Vec<u8> = QueueClass::all(8).filter(|class| class.is_in(set)).map(|class| class.0).collect();
    assert_eq!(there, [0, 5, 7]);
    assert_eq!(there.iter().fold(0, |all, class| all | TrafficClass(*class).bit()), set);
    let mut table = [3, 4];
    table[QueueClass(1)] += 1;
    assert_eq!((table[QueueClass(1)], table[..][TrafficClass::FIRST]), (5, 3));
    assert_eq!((QueueClass(6).index(), QueueClass(6).to_string()), (6, "6".to_string()));
}
