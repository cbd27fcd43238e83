//! The headers of a packet of RoCEv2: base transport header, and what follows it by opcode. Source: IBTA §9.2 to §9.5 and Annex A17;
//! Linux rxe_hdr.h (lengths and fields), ib_pack.h (opcodes).

use fanin_units::TrafficClass;

/// Bytes of the headers and trailer that each packet has: UDP header, base transport header (BTH) and invariant CRC (ICRC).
/// Source: RFC 768; IBTA §9.2, §7.8.1.
const EVERY: u16 = 8 + 12 + 4;
/// Bytes of the RDMA extended transport header (RETH). Source: IBTA §9.3.3.
const RETH: u16 = 16;
/// Bytes of the ACK extended transport header (AETH). Source: IBTA §9.3.5.
const AETH: u16 = 4;
/// Reserved bytes of a congestion notification packet, all zero. Source: IBTA Annex A17.9.3.
const CNP: u16 = 16;
/// Bytes of an optional word in an acknowledgment: the PSN of an out-of-order packet, or the delay at the receiver.
const WORD: u16 = 4;

/// Opcode of a RoCEv2 packet. Source: IBTA §9.2.1, table of opcodes of the reliable connection (000…) and of congestion
/// notification (100…).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum RoceOp {
    /// First or middle packet of an RDMA WRITE of several packets.
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    /// RDMA WRITE of a single packet.
    #[default]
    WriteOnly = 0x0a,
    /// Acknowledgment, positive or negative by its syndrome.
    Acknowledge = 0x11,
    /// Congestion notification packet (CNP).
    Notification = 0x81,
}

impl RoceOp {
    /// Opcode of a data packet that is the first or last one of its message, both, or neither.
    pub const fn write(first: bool, last: bool) -> RoceOp {
        match (first, last) {
            (true, true) => RoceOp::WriteOnly,
            (true, false) => RoceOp::WriteFirst,
            (false, true) => RoceOp::WriteLast,
            (false, false) => RoceOp::WriteMiddle,
        }
    }

    /// True if packets with this opcode carry data.
    pub const fn is_data(self) -> bool {
        matches!(self, RoceOp::WriteFirst | RoceOp::WriteMiddle | RoceOp::WriteLast | RoceOp::WriteOnly)
    }

    /// True if this opcode starts a message.
    pub const fn is_first(self) -> bool {
        matches!(self, RoceOp::WriteFirst | RoceOp::WriteOnly)
    }

    /// True if this opcode ends a message.
    pub const fn is_last(self) -> bool {
        matches!(self, RoceOp::WriteLast | RoceOp::WriteOnly)
    }
}

/// Meaning of an acknowledgment: positive, or sequence error. Source: IBTA §9.7.5.2.1 (syndromes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syndrome {
    /// Positive: all packets up to the PSN have arrived.
    #[default]
    Ack,
    /// PSN sequence error: the packet with the given PSN is missing.
    SequenceError,
}

/// The headers of a RoCEv2 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoceHeader {
    pub op: RoceOp,
    /// Packet sequence number (PSN), 24 bits.
    pub psn: u32,
    /// AckReq bit: the receiver shall acknowledge the packet.
    pub ack_request: bool,
    /// True if the packet has an RETH: the first one of a message does, and every one if receivers accept them out of order.
    pub reth: bool,
    pub syndrome: Syndrome,
    /// Data only: position of the first byte in the flow's byte stream, modulo 2^32 (the RETH's address), and the message's
    /// length in bytes.
    pub place: u32,
    pub message: u32,
    /// Acknowledgment only: number of complete messages, modulo 2^24 (MSN).
    pub msn: u32,
    /// Negative acknowledgment with selective repeat only: PSN of the packet that arrived out of order. Source: IRN §3.1.
    pub early: Option<u32>,
    /// Acknowledgment only, if congestion control asks for it: time that the data packet waited at its receiver \[ns\].
    /// Source: Swift §3.1.
    pub waited: Option<u32>,
    /// Traffic class of this packet; `None`: its flow's.
    pub class: Option<TrafficClass>,
    /// Padding bytes of zero that make the payload a multiple of four (PadCnt).
    pub pad: u8,
}

impl RoceHeader {
    /// Mask of packet sequence numbers, which have 24 bits.
    pub const PSN_MASK: u32 = 0xff_ffff;

    /// Bytes of all headers, with UDP's, the padding and the ICRC.
    #[inline(never)]
    pub fn bytes(&self) -> u16 {
        let own = match self.op {
            RoceOp::Acknowledge => {
                AETH + if self.early.is_some() { WORD } else { 0 } + if self.waited.is_some() { WORD } else { 0 }
            }
            RoceOp::Notification => CNP,
            _ => {
                if self.reth {
                    RETH
                } else {
                    0
                }
            }
        };
        EVERY + own + u16::from(self.pad)
    }

    /// Padding bytes that a payload of this length needs. Source: IBTA §9.2.4.
    pub const fn pad_of(payload: u16) -> u8 {
        (payload.wrapping_neg() & 3) as u8
    }
}
