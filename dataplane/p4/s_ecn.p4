/* SPDX-License-Identifier: Apache-2.0
 *
 * S-ECN, a threshold above it, and reports of bursts, at each egress port. P4_16, v1model; docs/dev/rtl.md says what has been run.
 *
 * Source: S-ECN (ICNP 2018) sections II-C and IV-C; the arithmetic is docs/dev/vectors-registers.md. A queue is first in, first out, so packets come by
 * the egress pipeline in the order of their arrivals, with the time at which each arrived (enq_timestamp) and the queue that it found
 * (enq_qdepth): the decision is that of the arrival.
 *
 * Each register is read once and written once for a packet:
 *   last   the new time in, the old one out
 *   sum    + P - R*I, compared, - R*I: one read, modify, write with two comparisons, as in hardware with a stateful ALU that has a minimum
 *   above  the new side of the threshold in, the old one out
 * R*I is a multiplication. A pipeline without one takes it from a table by the interval's leading bits, or R as a power of two.
 *
 * v1model counts queues in packets and time in microseconds: K is in packets, a clock is 1000 ns. */
#include <core.p4>
#include <v1model.p4>

struct local_t {
    /* What a report is about, kept by the copy of the packet that carries it. */
    @field_list(1)
    bit<16> port;
    @field_list(1)
    bit<16> queue;
    @field_list(1)
    bit<32> time;
}

#include "headers.p4"

const bit<32> PORTS    = 512;
const bit<8>  FRACTION = 20;                        /* fraction bits of bytes */
const bit<32> LONGEST  = 0x00FFFFFF;                /* the largest interval that the register holds [clocks] */
const bit<32> REPORTS  = 1;                         /* mirror session of reports */
const bit<32> EGRESS_CLONE = 2;                     /* instance_type in v1model */

/* S-ECN at the packet's port. */
control SEcn(inout headers_t hdr, inout standard_metadata_t meta) {
    register<bit<33>>(PORTS) last;                  /* a bit that there was one, and its time */
    register<bit<64>>(PORTS) sum;                   /* two's complement [2^-20 B]; 37 bits are used */

    bit<64> rate = 0;                               /* R [2^-20 B per clock] */
    int<64> floor = 0;                              /* minus the credit [2^-20 B] */
    bit<19> k = 0;

    action settings(bit<64> rate_per_clock, bit<16> credit, bit<19> threshold) {
        rate = rate_per_clock;
        floor = -((int<64>) (bit<64>) credit << FRACTION);
        k = threshold;
    }
    table ports {
        key = { meta.egress_port: exact; }
        actions = { settings; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5 && ports.apply().hit) {
            bit<32> port = (bit<32>) meta.egress_port;
            bit<32> frame = meta.packet_length;
            if (frame < MIN_FRAME) {
                frame = MIN_FRAME;
            }
            int<64> arrived = (int<64>) ((bit<64>) (frame + OVERHEAD) << FRACTION);
            bool capable = hdr.ipv4.ecn != NOT_ECT;
            bool by_slope = false;
            @atomic {
                bit<33> before;
                last.read(before, port);
                last.write(port, 1w1 ++ meta.enq_timestamp);
                bit<32> interval = meta.enq_timestamp - before[31:0];
                if (before[32:32] == 0 || interval > LONGEST) {
                    interval = LONGEST;
                }
                int<64> sendable = (int<64>) (rate * (bit<64>) interval);
                bit<64> word;
                sum.read(word, port);
                int<64> added = (int<64>) word + arrived - sendable;
                if (added < floor) {
                    added = floor;
                }
                by_slope = arrived > sendable && added > sendable;
                if (by_slope) {
                    if (!capable || added - sendable > sendable) {
                        added = sendable;           /* a packet that is not ECN-capable leaves its mark to the next */
                    } else {
                        added = added - sendable;
                    }
                }
                sum.write(port, (bit<64>) added);
            }
            if (capable && (by_slope || meta.enq_qdepth >= k)) {
                hdr.ipv4.ecn = CE;
            }
        }
    }
}

/* A copy of the first packet that finds at least `threshold` packets at a port, and of the first that finds fewer again: a burst begins,
 * a burst is over. As BurstRadar has it, but one packet for each edge. */
control Bursts(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    register<bit<1>>(PORTS) above;

    bit<19> threshold = 0;
    action settings(bit<19> packets) {
        threshold = packets;
    }
    table watched {
        key = { meta.egress_port: exact; }
        actions = { settings; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (watched.apply().hit) {
            bit<32> port = (bit<32>) meta.egress_port;
            bit<1> now = 0;
            if (meta.enq_qdepth >= threshold) {
                now = 1;
            }
            bit<1> before;
            @atomic {
                above.read(before, port);
                above.write(port, now);
            }
            if (before != now) {
                local.port = (bit<16>) meta.egress_port;
                local.queue = (bit<16>) meta.enq_qdepth;
                if (meta.enq_qdepth > 0xFFFF) {
                    local.queue = 0xFFFF;
                }
                local.time = meta.enq_timestamp;
                clone_preserving_field_list(CloneType.E2E, REPORTS, 1);
            }
        }
    }
}

control Egress(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    SEcn() s_ecn;
    Bursts() bursts;
    apply {
        if (meta.instance_type == EGRESS_CLONE) {
            hdr.report.setValid();
            hdr.report.port = local.port;
            hdr.report.queue = local.queue;
            hdr.report.time = local.time;
            hdr.report.type = hdr.ethernet.type;
            hdr.ethernet.type = ETHERTYPE_REPORT;
            truncate(128);
        } else {
            s_ecn.apply(hdr, meta);
            bursts.apply(hdr, local, meta);
        }
    }
}

V1Switch(Parse(), Verify(), Forward(), Egress(), Update(), Deparse()) main;
