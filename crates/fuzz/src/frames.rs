//! Bytes of frames and captures.

use fanin_telemetry::{Registers, Stamp, Unwrap};
use fanin_units::{Bytes, Span, Time};
use fanin_wire::notification::{attach, detach, Notice};
use fanin_wire::{Capture, Frame, LinkType};

/// Fuzzes a notification at the end of a frame: one that is taken off can be put back, one that is refused leaves the frame as it
/// is.
pub fn notification(data: &[u8]) {
    let mut frame = data.to_vec();
    if let Ok(Some(notice)) = detach(&mut frame) {
        assert_eq!(frame.len() + notice.size(), data.len());
        attach(&mut frame, &notice).expect("room for what was taken off");
        let mut alone = notice.alone([2; 6], [4; 6]);
        assert_eq!(detach(&mut alone), Ok(Some(notice)));
    }
    assert_eq!(frame, data);
    if let Ok(notice) = Notice::at_the_end_of(data) {
        let mut bytes = Vec::new();
        notice.write(&mut bytes);
        assert!(data.ends_with(&bytes) && bytes.len() == notice.size());
    }
}

/// Fuzzes the reading of a frame, in every way. The first three bytes choose link type, check sequence, and the cut.
pub fn frame(data: &[u8]) {
    let Some(([link, fcs, cut], data)) = data.split_first_chunk() else { return };
    let links = [1, 101, 0, 113, 276, 4_711];
    look_into(&Frame {
        offset: 0,
        interface: 0,
        link: LinkType::of(links[usize::from(*link) % links.len()]),
        time_ps: 0,
        length: data.len() as u32 + if cut % 2 == 1 { u32::from(*cut) << (cut / 8) } else { 0 },
        data,
        fcs: [None, Some(0), Some(4), Some(*fcs)][usize::from(*fcs) % 4],
        direction: None,
    });
}

fn look_into(frame: &Frame<'_>) {
    let bytes = frame.frame_bytes();
    assert!(frame.link != LinkType::Ethernet || bytes >= 64);
    let notification = frame.notification();
    assert_eq!(frame.notice(), notification.and_then(Result::ok));
    assert!(notification.is_some() || !frame.is_notice_only());
    frame.interface_number();
    if let Some(headers) = frame.headers() {
        headers.tcp_options(frame.data);
        if let Some(wrap) = headers.wrap {
            assert!((1..=8).contains(&wrap.depth) && headers.transport_at <= frame.data.len());
            let mirrored = wrap.mirror.map_or(0, |mirror| u64::from(mirror.length));
            assert!(mirrored <= u64::from(frame.length) + (1 << 17), "{mirrored}");
        } else {
            assert_eq!(Some(headers).map(|headers| headers.end), frame.outer_headers().map(|outer| outer.end));
        }
        assert!(headers.end >= 20);
        assert!(headers.tcp.is_none() || headers.ports.is_some());
        let end = if frame.is_trimmed(&headers) { headers.payload_at } else { headers.end };
        assert!(frame.stamp(&headers).is_none() || end + Stamp::BYTES <= frame.data.len());
    }
}

/// Fuzzes stamps one after another: port and registers as they were, times in ticks with the lower bits that were read. The first
/// two bytes choose the steps of the registers, the next eight the receiver's clock.
pub fn stamp(data: &[u8]) {
    let Some(([tick, unit, clock @ ..], rest)) = data.split_first_chunk::<10>() else { return };
    let step = |byte: u8| u64::from(byte & 15) << (byte >> 2);
    let registers = Registers { tick: Span::from_ps(step(*tick)), unit: Bytes(step(*unit)) };
    let clock = u64::from_be_bytes(*clock);
    let mut unwrap = Unwrap::after(u32::from(*tick));
    for bytes in rest.chunks_exact(8).filter_map(<[u8]>::first_chunk) {
        let Some(stamp) = Stamp::from_bytes(bytes) else { continue };
        assert_eq!(stamp.to_bytes(), *bytes);
        let ticks = unwrap.ticks(stamp.time);
        assert_eq!(ticks as u32, stamp.time);
        registers.time(ticks);
        registers.time_near(stamp.time, Time::from_ps(clock));
        registers.wrap();
        let queue = registers.queue(stamp.length);
        // A length that bytes cannot express saturates.
        if registers.unit.get() > 0 && queue.get() < u64::MAX {
            assert_eq!(registers.read(stamp.port, Time::from_ps(clock), queue).length, stamp.length);
        }
    }
}

/// Fuzzes the reading of a capture: frames lie in the file, and there are no more interfaces than their headers have room for.
pub fn capture(data: &[u8]) {
    let Ok(mut capture) = Capture::new(data) else { return };
    while let Ok(Some(frame)) = capture.next_frame() {
        assert!(frame.offset < data.len() as u64 && frame.data.len() <= frame.length as usize);
        look_into(&frame);
        let interface = frame.interface;
        assert!(interface < capture.interfaces().len());
    }
    assert!(capture.interfaces().len() <= data.len() / 20 + 1);
    assert!(matches!(capture.next_frame(), Ok(None)), "nothing is read after the end or an error");
}
