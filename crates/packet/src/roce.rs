//! The headers of a packet of RoCEv2: base transport header, and what follows it by opcode. Source: IBTA §9.2 to §9.5 and Annex A17;
//! Linux rxe_hdr.h (lengths and fields), ib_pack.h (opcodes).

/// UDP header, base transport header (BTH) and invariant CRC (ICRC), which every packet has. Source: RFC 768; IBTA §9.2, §7.8.1.
const EVERY: u16 = 8 + 12 + 4;
/// RDMA extended transport header. Source: IBTA §9.3.3.
const RETH: u16 = 16;
/// Acknowledge extended transport header. Source: IBTA §9.3.5.
const AETH: u16 = 4;
/// What a congestion notification carries besides: reserved, and zero. Source: IBTA Annex A17.9.3.
const CNP: u16 = 16;
/// The PSN of a packet that came out of order, and a field of the receiver's delay: 4 B each.
const WORD: u16 = 4;

/// What a packet is. Source: IBTA §9.2.1, table of opcodes of the reliable connection (000…) and of congestion notification (100…).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum RoceOp {
    /// RDMA WRITE of several packets.
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    /// RDMA WRITE of one packet.
    #[default]
    WriteOnly = 0x0a,
    /// Positive or negative, by its syndrome.
    Acknowledge = 0x11,
    /// Congestion notification packet (CNP).
    Notification = 0x81,
}

impl RoceOp {
    /// Of a packet of data, by whether a message begins and ends with it.
    pub const fn write(first: bool, last: bool) -> RoceOp {
        match (first, last) {
            (true, true) => RoceOp::WriteOnly,
            (true, false) => RoceOp::WriteFirst,
            (false, true) => RoceOp::WriteLast,
            (false, false) => RoceOp::WriteMiddle,
        }
    }

    /// Whether packets with it carry data.
    pub const fn is_data(self) -> bool {
        matches!(self, RoceOp::WriteFirst | RoceOp::WriteMiddle | RoceOp::WriteLast | RoceOp::WriteOnly)
    }

    /// Whether a message begins with it.
    pub const fn is_first(self) -> bool {
        matches!(self, RoceOp::WriteFirst | RoceOp::WriteOnly)
    }

    /// Whether a message ends with it.
    pub const fn is_last(self) -> bool {
        matches!(self, RoceOp::WriteLast | RoceOp::WriteOnly)
    }
}

/// What an acknowledgment says. Source: IBTA §9.7.5.2.1 (syndromes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syndrome {
    /// All packets up to its PSN have arrived.
    #[default]
    Ack,
    /// PSN sequence error: its PSN is the one that is missing.
    SequenceError,
}

/// The headers of a packet of RoCEv2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoceHeader {
    pub op: RoceOp,
    /// Packet sequence number: 24 bits.
    pub psn: u32,
    /// AckReq: the receiver shall acknowledge it.
    pub ack_request: bool,
    /// It carries an RETH: packets that a message begins with do, and all where receivers take them out of order.
    pub reth: bool,
    pub syndrome: Syndrome,
    /// Of data: the place of its first byte among those of its flow, modulo 2^32, which the RETH's address says, and the message's bytes.
    pub place: u32,
    pub message: u32,
    /// Of an acknowledgment: messages that are complete, modulo 2^24 (MSN).
    pub msn: u32,
    /// Of a negative one with selective repeat: the PSN of the packet that came too early. Source: IRN §3.1.
    pub early: Option<u32>,
    /// Of an acknowledgment, where the control asks for it: for how long the packet waited at its receiver \[ns\]. Source: Swift §3.1.
    pub waited: Option<u32>,
    /// The class that it travels in, where that is not its flow's.
    pub class: Option<u8>,
    /// Bytes of zero behind the payload, so that it ends at a multiple of four (PadCnt).
    pub pad: u8,
}

impl RoceHeader {
    /// Sequence numbers are of 24 bits.
    pub const PSN_MASK: u32 = 0xff_ffff;

    /// Bytes of all headers with UDP's, the padding and the ICRC.
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

    /// Bytes of padding that a payload needs. Source: IBTA §9.2.4.
    pub const fn pad_of(payload: u16) -> u8 {
        (payload.wrapping_neg() & 3) as u8
    }
}
