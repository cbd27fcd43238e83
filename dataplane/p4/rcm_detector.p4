/* SPDX-License-Identifier: Apache-2.0
 *
 * RCM's detection of congestion at each egress port: the degree of a sampled queue goes out with a report. P4_16, v1model; docs/dev/rtl.md
 * says what has been run.
 *
 * Source: RCM (NPC 2017) section 3.2, formula 1: F_b = Q_off + w_q * Q_delta, quantised to six bits as in IEEE 802.1Qau; the arithmetic is
 * docs/dev/vectors-registers.md. w_q = 2 is a shift. The division of the quantisation is a table of 63 ranges of F_b, the random interval another of eight.
 *
 * Once for a packet, and where that cannot be. `left` counts bytes down to the next sample, `before` is the queue at the last one. The
 * degree needs `before`, which is touched where `left` is used up, and the new `left` needs the degree: two registers, each of which
 * the other waits for. One pipeline pass can have that only if both lie in one register (here: 64 bits, read and written once, all
 * in between), as v1model and RTL can; a stateful ALU of a switch ASIC cannot hold the table between the read and the write. Such a
 * switch sets `left` by the degree of the sample before: the interval is one sample late, the degree is not.
 *
 * v1model counts queues in packets: Q_eq and the degree's ranges are in packets. Registers begin at zero, so a port's first packet is a
 * sample; the reference begins with a whole interval. */
#include <core.p4>
#include <v1model.p4>

struct local_t {
    @field_list(1)
    bit<16> port;
    @field_list(1)
    bit<16> queue;
    @field_list(1)
    bit<32> time;
    @field_list(1)
    bit<8>  degree;
}

#include "headers.p4"

const bit<32> PORTS   = 512;
const bit<32> REPORTS = 1;
const bit<32> EGRESS_CLONE = 2;

control Detector(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    register<bit<64>>(PORTS) state;                 /* left [B], 32 bits signed; before [packets], 32 bits */

    int<32> q_eq = 0;
    bit<8>  degree = 0;
    bit<32> mean = 0;

    action settings(bit<32> equilibrium) {
        q_eq = (int<32>) equilibrium;
    }
    table ports {
        key = { meta.egress_port: exact; }
        actions = { settings; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    /* min (63, ceil (63 F_b / (Q_eq (2 w_q + 1)))), and sample / (degree / 8 + 1). */
    action sampled(bit<8> degree_of_range, bit<32> mean_of_degree) {
        degree = degree_of_range;
        mean = mean_of_degree;
    }
    bit<32> positive = 0;
    table quantise {
        key = { meta.egress_port: exact; positive: range; }
        actions = { sampled; NoAction; }
        default_action = NoAction();
        size = 32768;
    }

    apply {
        if (ports.apply().hit) {
            bit<32> port = (bit<32>) meta.egress_port;
            bool sample = false;
            bit<32> thousandths;
            random(thousandths, 850, 1150);
            @atomic {
                bit<64> word;
                state.read(word, port);
                int<32> left = (int<32>) word[63:32] - (int<32>) (meta.packet_length + 4);
                bit<32> before = word[31:0];
                if (left <= 0) {
                    sample = true;
                    int<32> queue = (int<32>) (bit<32>) meta.enq_qdepth;
                    int<32> fb = queue - q_eq + ((queue - (int<32>) before) << 1);
                    if (fb > 0) {
                        positive = (bit<32>) fb;
                    }
                    quantise.apply();
                    /* mean * thousandths / 1000, by a reciprocal: 2^20 / 1000, rounded up. */
                    bit<64> next = ((bit<64>) mean * (bit<64>) thousandths * 1049) >> 20;
                    if (next == 0) {
                        next = 1;
                    }
                    left = (int<32>) next[31:0];
                    before = (bit<32>) meta.enq_qdepth;
                }
                state.write(port, (bit<32>) left ++ before);
            }
            if (sample && degree > 0) {
                local.port = (bit<16>) meta.egress_port;
                local.queue = (bit<16>) meta.enq_qdepth;
                local.time = meta.enq_timestamp;
                local.degree = degree;
                clone_preserving_field_list(CloneType.E2E, REPORTS, 1);
            }
        }
    }
}

control Egress(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    Detector() detector;
    apply {
        if (meta.instance_type == EGRESS_CLONE) {
            hdr.report.setValid();
            hdr.report.port = local.port;
            hdr.report.queue = (bit<16>) local.degree;
            hdr.report.time = local.time;
            hdr.report.type = hdr.ethernet.type;
            hdr.ethernet.type = ETHERTYPE_REPORT;
            truncate(128);
        } else {
            detector.apply(hdr, local, meta);
        }
    }
}

V1Switch(Parse(), Verify(), Forward(), Egress(), Update(), Deparse()) main;
