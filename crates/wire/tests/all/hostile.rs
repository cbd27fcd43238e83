//! Captures that are damaged, cut, or no captures: no panic, no endless loop, no memory that a length field asks for.

use crate::common::{block, framed, interface, option, other_frames, packet, pcap, section, tcp_frame, Order};
use fanin_wire::{Capture, CaptureError, Headers, LinkType, Trouble};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what this thread holds, and the most it ever held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        MOST.with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        System.dealloc(pointer, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is read ahead, and then some: nothing else may grow but with what is really in the file.
const ALLOWED: isize = 300 << 10;

/// Reads all there is; gives the frames' places and sizes, and how it ended.
fn read(file: &[u8]) -> (Vec<(u64, usize)>, Result<(), CaptureError>) {
    let (held, before) = (HELD.with(Cell::get), MOST.with(Cell::get));
    MOST.with(|most| most.set(held));
    let mut frames = Vec::with_capacity(64);
    let mut read = || {
        let mut capture = Capture::new(file)?;
        while let Some(frame) = capture.next_frame()? {
            assert!(frame.offset < file.len() as u64 && frame.data.len() <= frame.length as usize);
            assert!(frame.interface < capture_interfaces_at_most(file));
            if let Some(headers) = frame.headers() {
                frame.stamp(&headers);
                assert!(headers.end >= 20);
            }
            frame.frame_bytes();
            frames.push((frame.offset, frame.data.len()));
        }
        Ok(())
    };
    let ended = read();
    let most = MOST.with(Cell::get) - held;
    MOST.with(|cell| cell.set(before.max(held + most)));
    // A buffer that grows doubles; interfaces and frames take memory in proportion to the file.
    let allowed = ALLOWED + 16 * file.len() as isize;
    assert!(most <= allowed, "{most} bytes for a file of {}", file.len());
    (frames, ended)
}

/// An interface takes 20 bytes, a pcap file has one.
fn capture_interfaces_at_most(file: &[u8]) -> usize {
    file.len() / 20 + 1
}

/// A small capture with all that is read.
fn pcapng(order: Order) -> Vec<u8> {
    let frame = tcp_frame();
    let statistics = [&order.u32(0)[..], &[0; 8], &option(order, 5, &order.u64(3))].concat();
    let mut old = order.u16(0).to_vec();
    old.extend(order.u16(1));
    for n in [0, 9, 4, 60] {
        old.extend(order.u32(n));
    }
    old.extend(&frame[..4]);
    [
        section(order),
        interface(order, 1, &[option(order, 2, b"eth0"), option(order, 9, &[9]), option(order, 14, &order.u64(5))]),
        packet(order, 0, 1 << 40, 64, &frame, &[option(order, 2, &order.u32(1 | 4 << 5))]),
        block(order, 0xbad, &[1; 12]),
        block(order, 2, &old),
        block(order, 5, &statistics),
        section(order),
        interface(order, 101, &[]),
        packet(order, 0, 77, 64, &frame[14..], &[]),
        block(order, 3, &[&order.u32(4)[..], &frame[..4]].concat()),
    ]
    .concat()
}

fn small_pcap(order: Order) -> Vec<u8> {
    let frame = tcp_frame();
    pcap(order, 0xa1b2_3c4d, 1, &[(1, 2, 64, &frame), (1, 3, 64, &frame[..20]), (2, 0, 0, &[])])
}

fn captures() -> Vec<Vec<u8>> {
    [Order::Little, Order::Big].into_iter().flat_map(|order| [pcapng(order), small_pcap(order)]).collect()
}

#[test]
fn a_capture_that_is_cut_gives_what_was_whole_and_says_so() {
    for file in captures() {
        let (whole, ended) = read(&file);
        assert_eq!((whole.len(), ended), (3, Ok(())));
        let mut boundaries = 0;
        for n in 0..file.len() {
            let (frames, ended) = read(&file[..n]);
            assert_eq!(frames[..], whole[..frames.len()]);
            match ended {
                Ok(()) => boundaries += 1,
                Err(error) if n == 0 => assert_eq!(error.trouble, Trouble::Unsupported),
                Err(error) => {
                    assert_eq!(error.trouble, Trouble::Truncated, "{n}: {error}");
                    assert!(error.offset < n as u64 && error.to_string().contains("the file ends after"));
                }
            }
        }
        assert!(boundaries >= 3, "{boundaries}");
    }
}

#[test]
fn a_length_field_alone_takes_no_memory() {
    let le = Order::Little;
    for length in [16_u32 << 20, (16 << 20) + 4, u32::MAX - 3] {
        for kind in [1_u32, 2, 3, 5, 6, 0x0a0d_0d0a, 77] {
            let mut file = [section(le), interface(le, 1, &[])].concat();
            file.extend(kind.to_le_bytes());
            file.extend(length.to_le_bytes());
            file.extend([0x4d, 0x3c, 0x2b, 0x1a, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert!(read(&file).1.is_err());
        }
        let mut file = small_pcap(le);
        file[24 + 8..24 + 12].copy_from_slice(&length.to_le_bytes());
        assert!(read(&file).1.is_err());
    }
}

#[test]
fn interfaces_have_a_bound() {
    let le = Order::Little;
    let mut file = section(le);
    for _ in 0..=1 << 16 {
        file.extend(interface(le, 1, &[]));
    }
    let error = read(&file).1.unwrap_err();
    assert_eq!(error.to_string(), "block 65538 at byte 1310748: more than 65536 interfaces");
}

/// One change to a file.
#[derive(Clone, Debug)]
enum Change {
    Set(usize, u8),
    Flip(usize, u8),
    Word(usize, u32),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let word = prop_oneof![Just(0), Just(u32::MAX), Just(0x8000_0000), 0..100_u32, any::<u32>()];
    let change = prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, b)| Change::Set(at, b)),
        (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (any::<usize>(), word).prop_map(|(at, w)| Change::Word(at, w)),
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), 1..40_usize).prop_map(|(at, n)| Change::Remove(at, n)),
        (any::<usize>(), 1..80_usize).prop_map(|(at, n)| Change::Repeat(at, n)),
    ];
    proptest::collection::vec(change, 1..6)
}

fn change(file: &mut Vec<u8>, change: &Change) {
    if file.is_empty() {
        return;
    }
    let size = file.len();
    let span = |at: usize, n: usize| at % size..(at % size + n).min(size);
    match *change {
        Change::Set(at, b) => file[at % size] = b,
        Change::Flip(at, bit) => file[at % size] ^= 1 << bit,
        Change::Word(at, word) => {
            // Length fields are aligned in all blocks.
            let at = (at % size) & !3;
            let end = (at + 4).min(size);
            file[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
        }
        Change::Cut(at) => file.truncate(at % size),
        Change::Remove(at, n) => drop(file.drain(span(at, n))),
        Change::Repeat(at, n) => {
            let again = file[span(at, n)].to_vec();
            file.splice(at % size..at % size, again);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(start in 0..6_usize, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let first: &[u8] = match start {
            0 => &[0x0a, 0x0d, 0x0d, 0x0a],
            1 => &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            2 => &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4],
            3 => &section(Order::Little),
            4 => &[section(Order::Big), interface(Order::Big, 1, &[])].concat(),
            _ => &[],
        };
        let _ = read(&[first, &bytes].concat());
    }

    #[test]
    fn damaged_captures(which in 0..4_usize, changes in changes()) {
        let mut file = captures().swap_remove(which);
        changes.iter().for_each(|c| change(&mut file, c));
        let _ = read(&file);
    }

    #[test]
    fn headers_of_anything(link in 0..300_u32, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        Headers::parse(LinkType::of(link), &bytes);
    }

    #[test]
    fn headers_of_damaged_frames(link in prop_oneof![Just(1_u32), Just(101)], at in 0..64_usize, value: u8, cut in 0..=64_usize) {
        let mut frame = tcp_frame();
        frame[at] = value;
        let frame = &frame[..cut];
        let frame = if link == 1 { frame } else { frame.get(14..).unwrap_or_default() };
        if let Some(headers) = Headers::parse(LinkType::of(link), frame) {
            prop_assert!(headers.end >= 20);
            prop_assert!(headers.payload <= 65_535);
        }
    }

    /// In memory of its own, so that a memory checker sees a read beyond its end.
    #[test]
    fn headers_of_damaged_frames_of_all_kinds(
        which in 0..10_usize,
        link in prop_oneof![Just(0_u32), Just(1), Just(101), Just(113), Just(276)],
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut: Option<usize>,
    ) {
        let (ether_type, packet) = other_frames().swap_remove(which);
        let mut frame = framed(link, ether_type, &packet);
        for (at, value) in changes {
            let at = at % frame.len();
            frame[at] = value;
        }
        frame.truncate(cut.map_or(usize::MAX, |cut| cut % (frame.len() + 1)));
        if let Some(headers) = Headers::parse(LinkType::of(link), &frame.into_boxed_slice()) {
            prop_assert!(headers.end >= 20);
        }
    }
}
