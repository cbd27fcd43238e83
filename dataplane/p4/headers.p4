/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers, parser and checksums that the programs of this folder share: Ethernet, RIMM's headers before the EtherType of a frame, IPv4, ports,
 * and a report behind Ethernet. P4_16, v1model. */
#ifndef FANIN_HEADERS_P4
#define FANIN_HEADERS_P4

const bit<16> ETHERTYPE_IPV4   = 0x0800;
const bit<16> ETHERTYPE_REPORT = 0x88B5;    /* IEEE 802, local experiments */
/* RIMM: docs/wire.md. */
const bit<16> ETHERTYPE_DEPTH   = 0xA8F0;
const bit<16> ETHERTYPE_DETOUR  = 0xA8F1;
const bit<16> ETHERTYPE_RETURN  = 0xA8F2;
const bit<16> ETHERTYPE_MESSAGE = 0xA8F3;
const bit<16> ETHERTYPE_ANSWER  = 0xA8F4;
const bit<2>  NOT_ECT = 0;
const bit<2>  CE      = 3;
/* What is on the wire besides v1model's packet_length: FCS, preamble and gap; and the least length without FCS. */
const bit<32> OVERHEAD  = 24;
const bit<32> MIN_FRAME = 60;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

/* Source and destination of TCP and UDP. */
header ports_t {
    bit<16> src;
    bit<16> dst;
}

/* The depth that a frame's sender left behind. */
header depth_t {
    bit<16> depth;
    bit<16> type;       /* EtherType of what follows */
}

/* A packet on a detour. */
header detour_t {
    bit<16> depth;
    bit<32> number;
    bit<16> type;
}

/* A message about a port. */
header message_t {
    bit<16> depth;
    bit<16> port;
    bit<16> crossing;
    bit<32> queue;
    bit<16> type;
}

/* The registers of a port as a packet found them: docs/telemetry.md, with v1model's units: microseconds, packets. */
header report_t {
    bit<16> port;
    bit<16> queue;      /* packets, saturating */
    bit<32> time;       /* us */
    bit<16> type;       /* EtherType of what follows */
}

struct headers_t {
    ethernet_t ethernet;
    report_t   report;
    depth_t    depth;
    detour_t   detour;
    message_t  message;
    ipv4_t     ipv4;
    ports_t    ports;
}

parser Parse(packet_in packet, out headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_DEPTH: depth;
            ETHERTYPE_DETOUR: detour;
            ETHERTYPE_RETURN: detour;
            ETHERTYPE_MESSAGE: message;
            ETHERTYPE_ANSWER: message;
            default: accept;
        }
    }
    state depth {
        packet.extract(hdr.depth);
        transition select(hdr.depth.type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state detour {
        packet.extract(hdr.detour);
        transition select(hdr.detour.type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state message {
        packet.extract(hdr.message);
        transition select(hdr.message.type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.offset) {
            (6, 5, 0): ports;
            (17, 5, 0): ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.report);
        packet.emit(hdr.depth);
        packet.emit(hdr.detour);
        packet.emit(hdr.message);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

/* A header with options keeps its checksum only where CE is not set; none of the programs here sets it there. */
control Verify(inout headers_t hdr, inout local_t local) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Update(inout headers_t hdr, inout local_t local) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

/* Forwarding by destination: what a switch needs to be tried by itself. */
control Forward(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    action to(bit<9> port) {
        meta.egress_spec = port;
    }
    action drop() {
        mark_to_drop(meta);
    }
    table destination {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to; drop; }
        default_action = drop();
        size = 1024;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            destination.apply();
        } else {
            drop();
        }
    }
}

#endif
