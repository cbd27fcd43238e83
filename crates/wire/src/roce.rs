//! RoCEv2 behind the IP header: UDP, base transport header, what follows it by opcode, payload of zeroes, invariant CRC.
//!
//! Source: IBTA §9.2 to §9.5 (headers), §7.8.1 and Annex A17.3.3 (ICRC), Annex A17.9.3 (CNP); Linux rxe_hdr.h, rxe_icrc.c. Golden frames
//! are held against scapy's and Wireshark's dissection.

use fanin_packet::{Envelope, RoceHeader, RoceOp, Side, Syndrome};

/// UDP destination port of RoCEv2. Source: IBTA Annex A17.3.1.
pub(crate) const PORT: u16 = 4791;
/// Source ports, which spread flows over paths, begin here. Source: Linux rdma_flow_label_to_udp_sport.
const ENTROPY: u16 = 0xc000;
/// Key of the default partition. Source: IBTA §10.9.1.2.
const PARTITION: [u8; 2] = [0xff, 0xff];
/// Key (R_Key) of all memory, as it has one here.
const KEY: u32 = 1;
/// Queue pairs 0 and 1 are for management. Source: IBTA §3.9.
const RESERVED_QPS: u32 = 2;
/// Credit count of an acknowledgment that stands for none. Source: IBTA §9.7.7.2.
const NO_CREDITS: u8 = 0x1f;
const SEQUENCE_ERROR: u8 = 0x60;
const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;

/// The queue pair that a packet of a flow goes to: two numbers for each flow, of 24 bits.
fn queue_pair(envelope: &Envelope) -> u32 {
    let side = u32::from(envelope.to == Side::Responder);
    ((envelope.flow.0 << 1 | side).wrapping_add(RESERVED_QPS)) & RoceHeader::PSN_MASK
}

/// Appends all behind the IP header; `whole` begins with that header. A trimmed packet has its headers, and no payload and no ICRC:
/// zeroes are in their place.
pub fn append(envelope: &Envelope, roce: &RoceHeader, whole: &mut Vec<u8>, ip: usize) {
    let length = roce.bytes() + envelope.payload;
    let source = ENTROPY | envelope.hash as u16 & !ENTROPY;
    // Without checksum: the ICRC covers more. Source: IBTA Annex A17.3.1.
    for field in [source, PORT, length, 0] {
        whole.extend(field.to_be_bytes());
    }
    whole.extend([roce.op as u8, roce.pad << 4]);
    whole.extend(PARTITION);
    whole.push(if roce.op == RoceOp::Notification { BECN } else { 0 });
    whole.extend(&queue_pair(envelope).to_be_bytes()[1..]);
    whole.push(if roce.ack_request { ACK_REQUEST } else { 0 });
    whole.extend(&roce.psn.to_be_bytes()[1..]);
    match roce.op {
        RoceOp::Acknowledge => {
            whole.push(match roce.syndrome {
                Syndrome::Ack => NO_CREDITS,
                Syndrome::SequenceError => SEQUENCE_ERROR,
            });
            whole.extend(&roce.msn.to_be_bytes()[1..]);
            for word in [roce.early, roce.waited].into_iter().flatten() {
                whole.extend(word.to_be_bytes());
            }
        }
        RoceOp::Notification => whole.extend([0; 16]),
        _ if roce.reth => {
            whole.extend(u64::from(roce.place).to_be_bytes());
            whole.extend(KEY.to_be_bytes());
            whole.extend(roce.message.to_be_bytes());
        }
        _ => {}
    }
    if !envelope.trimmed {
        whole.resize(whole.len() + usize::from(envelope.payload) + usize::from(roce.pad), 0);
        let crc = invariant_crc(&whole[ip..]);
        whole.extend(crc);
    }
}

/// CRC-32 of Ethernet over all that no switch changes: fields that may change count as ones, and 64 more stand for the header that
/// InfiniBand has before IP's. Source: IBTA Annex A17.3.3; Linux rxe_icrc_hdr.
fn invariant_crc(packet: &[u8]) -> [u8; 4] {
    let mut covered = packet.to_vec();
    let header = if packet[0] >> 4 == 6 {
        covered[0] |= 0x0f; // traffic class and flow label
        covered[1..4].fill(0xff);
        covered[7] = 0xff; // hop limit
        usize::from(fanin_packet::IpVersion::V6.header())
    } else {
        covered[1] = 0xff; // DSCP and ECN
        covered[8] = 0xff; // time to live
        covered[10..12].fill(0xff); // checksum
        usize::from(fanin_packet::IpVersion::V4.header())
    };
    covered[header + 6..header + 8].fill(0xff); // UDP's checksum
    covered[header + 8 + 4] = 0xff; // FECN, BECN
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xff; 8]);
    crc.update(&covered);
    crc.finalize().to_le_bytes()
}

/// Bytes of RoCEv2's own headers behind UDP's, and of the trailer behind the payload, from the first bytes of the UDP payload and
/// its `length`; `None` where it is cut off or is no reliable connection's. What carries no data is header as a whole. Source:
/// IBTA §9.2.1.
pub(crate) fn overhead(bytes: &[u8], length: usize) -> Option<(usize, usize)> {
    const BTH: usize = 12;
    const ICRC: usize = 4;
    let (opcode, flags) = (*bytes.first()?, *bytes.get(1)?);
    let extended = match opcode {
        0x00..=0x02 | 0x04 | 0x07 | 0x08 | 0x0e => 0,
        0x03 | 0x05 | 0x09 | 0x0d | 0x0f | 0x10 | 0x16 | 0x17 => 4,
        0x06 | 0x0a => 16,
        0x0b => 20,
        0x0c | 0x11..=0x14 | 0x81 => return Some((length, 0)),
        _ => return None,
    };
    let behind = usize::from(flags >> 4 & 3) + ICRC;
    Some((BTH + extended, behind)).filter(|_| length >= BTH + extended + behind)
}
