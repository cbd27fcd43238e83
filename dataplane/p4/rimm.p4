/* SPDX-License-Identifier: Apache-2.0
 *
 * RIMM at a switch with four neighbours: detector with messages, depths of neighbours (QDM) in headers, sequencer, end of a detour by a gap
 * of chi (flowlet). P4_16, v1model; docs/dev/rtl.md says what has been run.
 *
 * Source: RIMM sections III and V; the arithmetic is docs/dev/vectors-registers.md with `flowlet` = 1, headers are docs/wire.md.
 *
 * Each register is read once and written once for a packet, in this order:
 *   egress   detector[port]   side of alpha, full, crossings, time of the last message
 *   ingress  alert[port]      on, over, crossing, since: that of the message's port, else that of the packet's
 *            neighbours[0]    four times heard, alert, depth: one's own depth or alert in, all out, and the best is chosen
 *            pairs[index]     Sa, Sf, three clocks, port, active, over
 * What is decided at one is not needed before it, so that they lie in stages behind one another.
 *
 * Where the paper's algorithm cannot be had so:
 *   pairs       Sf goes on only where the number is Sf and the pair is not given up, which Sa, Sf and the clocks decide together. A register
 *               for each would have to be read before it can be known whether another is written: here they are one register of 192 bits, as
 *               v1model and RTL can. A stateful ALU of a switch ASIC has 64 bits, Sa and Sf: it can number and release, and must leave
 *               giving up to the control plane. The release that the paper calls more reliable, when Sa = Sf, has the same need: hence
 *               flowlets, here as there.
 *   neighbours  a minimum over registers reads all of them. Here they are one register of 72 bits; with more neighbours than fit, a
 *               register for each, which all are read, and each written by its own packets alone.
 *   messages    egress knows the depth, ingress the neighbours: a message goes around by recirculation, once for each crossing.
 *
 * v1model has microseconds, and packets instead of bytes and cells: alpha, depths and clocks are in these. A message keeps the lengths and
 * the TCP checksum of its packet where a host would see them wrong; no host sees one. The time to live is not taken down here. */
#include <core.p4>
#include <v1model.p4>

struct local_t {
    /* What a message is about, kept by the copy of the packet that becomes one. */
    @field_list(1)
    bit<16> port;
    @field_list(1)
    bit<16> crossing;
    @field_list(1)
    bit<32> queue;
}

#include "headers.p4"

const bit<32> PORTS    = 512;
const bit<32> PAIRS    = 4096;
const bit<16> SEVERAL  = 0xFFFF;
const bit<3>  NOBODY   = 7;                         /* no neighbour: a host's port, or one without RIMM */
const bit<32> MESSAGES = 1;                         /* mirror session of messages: any port, they do not leave by it */
const bit<32> EGRESS_CLONE = 2;                     /* instance_type in v1model */
const bit<32> RECIRCULATED = 4;
/* us */
const bit<32> GIVE_UP = 1000;
const bit<32> LONGEST = 10000;
const bit<32> CHI     = 500;
const bit<32> REPEAT  = 100;

/* Detours at ingress: what comes back, what goes out, and by which neighbour. */
control Sequencer(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    register<bit<64>>(PORTS) alert;                 /* on, over, crossing 16, since 32 */
    register<bit<72>>(1) neighbours;                /* of each: heard, on, depth 16 */
    register<bit<192>>(PAIRS) pairs;                /* active, over, port 16, last, moved, began, sf, sa */

    bit<3>  from = NOBODY;
    bit<3>  about = NOBODY;
    bit<32> alpha = 0xFFFFFFFF;
    bit<16> room = 0;

    action comes_from(bit<3> neighbour) {
        from = neighbour;
    }
    table sources {
        key = { meta.ingress_port: exact; }
        actions = { comes_from; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    /* The port that a message is about, or a packet is for. */
    bit<9> port = 0;
    action settings(bit<3> neighbour, bit<32> packets, bit<16> most) {
        about = neighbour;
        alpha = packets;
        room = most;
    }
    table ports {
        key = { port: exact; }
        actions = { settings; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    bit<3> best = NOBODY;
    action leaves_by(bit<9> way) {
        meta.egress_spec = way;
    }
    action nowhere() {
        mark_to_drop(meta);
    }
    table ways {
        key = { best: exact; }
        actions = { leaves_by; nowhere; }
        default_action = nowhere();
        size = 8;
    }

    apply {
        bit<32> now = (bit<32>) meta.ingress_global_timestamp;
        bit<16> kind = hdr.ethernet.type;
        bool own = meta.instance_type == RECIRCULATED && kind == ETHERTYPE_MESSAGE;    /* a message of this switch, which has no way yet */
        bool answer = kind == ETHERTYPE_ANSWER;
        bit<9> to = meta.egress_spec;

        sources.apply();
        port = to;
        if (own || answer) {
            port = hdr.message.port[8:0];
        }
        ports.apply();

        /* What a neighbour says of itself. */
        bit<16> depth = 0;
        bool says = from != NOBODY && !own;
        if (hdr.depth.isValid()) {
            depth = hdr.depth.depth;
        } else if (hdr.detour.isValid()) {
            depth = hdr.detour.depth;
        } else if (hdr.message.isValid()) {
            depth = hdr.message.depth;
        } else {
            says = false;
        }

        bit<1> on;
        bit<1> over;
        @atomic {
            bit<64> word;
            alert.read(word, (bit<32>) port);
            on = word[49:49];
            over = word[48:48];
            bit<16> crossing = word[47:32];
            bit<32> since = word[31:0];
            if (answer) {
                bit<16> ahead = hdr.message.crossing - crossing;
                if (ahead != 0 && ahead < 0x8000) {
                    crossing = hdr.message.crossing;
                    if (ahead > 1) {
                        on = 0;                     /* a message was lost: that alert is over */
                    }
                    if (hdr.message.queue < alpha) {
                        on = 0;
                    } else if (on == 0) {
                        on = 1;
                        over = 0;
                        since = now;
                    }
                }
            } else if (on == 1 && now - since >= GIVE_UP) {
                over = 1;
            }
            alert.write((bit<32>) port, 14w0 ++ on ++ over ++ crossing ++ since);
        }
        bool alerted = on == 1 && over == 0;
        bool congested = on == 1 && over == 1;

        bit<72> all;
        @atomic {
            neighbours.read(all, 0);
            if (says && from == 0) {
                all[17:17] = 1;
                all[15:0] = depth;
            }
            if (says && from == 1) {
                all[35:35] = 1;
                all[33:18] = depth;
            }
            if (says && from == 2) {
                all[53:53] = 1;
                all[51:36] = depth;
            }
            if (says && from == 3) {
                all[71:71] = 1;
                all[69:54] = depth;
            }
            if (about == 0) {
                all[16:16] = on;
            }
            if (about == 1) {
                all[34:34] = on;
            }
            if (about == 2) {
                all[52:52] = on;
            }
            if (about == 3) {
                all[70:70] = on;
            }
            neighbours.write(0, all);
        }

        /* The least depth below room of a neighbour that was heard, is not in alert, and is not the port itself; of equal ones the first. For
         * a message, where there is none, of all that were heard. */
        bit<17> least = 0x1FFFF;
        bit<3> any = NOBODY;
        bit<17> least_of_all = 0x1FFFF;
        if (all[17:17] == 1 && about != 0) {
            any = 0;
            least_of_all = 1w0 ++ all[15:0];
            if (all[16:16] == 0 && all[15:0] < room) {
                best = 0;
                least = 1w0 ++ all[15:0];
            }
        }
        if (all[35:35] == 1 && about != 1) {
            if (1w0 ++ all[33:18] < least_of_all) {
                any = 1;
                least_of_all = 1w0 ++ all[33:18];
            }
            if (all[34:34] == 0 && all[33:18] < room && 1w0 ++ all[33:18] < least) {
                best = 1;
                least = 1w0 ++ all[33:18];
            }
        }
        if (all[53:53] == 1 && about != 2) {
            if (1w0 ++ all[51:36] < least_of_all) {
                any = 2;
                least_of_all = 1w0 ++ all[51:36];
            }
            if (all[52:52] == 0 && all[51:36] < room && 1w0 ++ all[51:36] < least) {
                best = 2;
                least = 1w0 ++ all[51:36];
            }
        }
        if (all[71:71] == 1 && about != 3) {
            if (1w0 ++ all[69:54] < least_of_all) {
                any = 3;
            }
            if (all[70:70] == 0 && all[69:54] < room && 1w0 ++ all[69:54] < least) {
                best = 3;
            }
        }

        bool detour = false;
        bit<32> number = 0;
        bool back = kind == ETHERTYPE_RETURN;
        if (own) {
            if (best == NOBODY) {
                best = any;
            }
        } else if (hdr.ipv4.isValid() && !answer && kind != ETHERTYPE_DETOUR && kind != ETHERTYPE_MESSAGE) {
            bit<32> index;
            bit<16> source = 0;
            bit<16> target = 0;
            if (hdr.ports.isValid()) {
                source = hdr.ports.src;
                target = hdr.ports.dst;
            }
            hash(index, HashAlgorithm.crc32, (bit<32>) 0,
                { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, source, target }, PAIRS);
            bit<16> goal = (bit<16>) to;
            bool may = best != NOBODY && hdr.ipv4.ttl >= 8;
            @atomic {
                bit<192> pair;
                pairs.read(pair, index);
                bit<32> sa = pair[31:0];
                bit<32> sf = pair[63:32];
                bit<32> began = pair[95:64];
                bit<32> moved = pair[127:96];
                bit<32> last = pair[159:128];
                bit<16> of_port = pair[175:160];
                bit<1> given = pair[176:176];       /* too long: no detours until the alert is off */
                bit<1> active = pair[177:177];

                bool out = sa != sf;
                if (!out && now - last >= CHI) {
                    active = 0;
                }
                bool ends = false;
                if (out && congested) {
                    given = 0;
                    ends = true;
                } else if ((out || active == 1) && now - began >= LONGEST) {
                    given = 1;
                    ends = true;
                } else if (out && now - moved >= GIVE_UP) {
                    given = 0;
                    ends = true;
                }
                if (ends) {
                    sf = sa;
                    active = 0;
                }

                if (back) {
                    number = hdr.detour.number;
                    if (!alerted) {
                        given = 0;
                    }
                    bool late = number - sf >= sa - sf;
                    if (late && (!alerted || given == 1)) {
                        detour = false;
                    } else if (!alerted && number == sf) {
                        sf = sf + 1;
                        moved = now;
                    } else if (may) {
                        detour = true;
                    } else if (!late && number == sf) {
                        sf = sf + 1;
                        moved = now;
                    }
                } else if (alerted || of_port == goal || of_port == SEVERAL) {
                    bit<32> gap = now - last;
                    last = now;
                    if (!alerted) {
                        given = 0;
                        if (gap >= CHI) {
                            active = 0;
                        }
                    }
                    if (may && ((alerted && given == 0) || (!alerted && active == 1))) {
                        if (sa == sf) {
                            if (active == 0) {
                                began = now;
                            }
                            moved = now;
                            of_port = goal;
                        } else if (of_port != goal) {
                            of_port = SEVERAL;
                        }
                        detour = true;
                        number = sa;
                        sa = sa + 1;
                        active = 1;
                    }
                }
                pairs.write(index, 14w0 ++ active ++ given ++ of_port ++ last ++ moved ++ began ++ sf ++ sa);
            }
        }

        /* Headers off, and on again where the packet goes or stays on a detour. */
        if (kind == ETHERTYPE_DETOUR || kind == ETHERTYPE_MESSAGE) {
            if (own) {
                ways.apply();
            } else if (to == meta.ingress_port) {   /* another switch's: back where it came from */
                hdr.ethernet.type = kind + 1;
            } else if (kind == ETHERTYPE_MESSAGE) {
                mark_to_drop(meta);                 /* of no use to anybody else */
            } else {
                hdr.ethernet.type = hdr.detour.type;
                hdr.detour.setInvalid();            /* astray */
            }
        } else if (answer) {
            mark_to_drop(meta);
        } else {
            if (hdr.depth.isValid()) {
                hdr.ethernet.type = hdr.depth.type;
                hdr.depth.setInvalid();
            }
            if (back) {
                hdr.ethernet.type = hdr.detour.type;
                hdr.detour.setInvalid();
            }
            if (detour) {
                hdr.detour.setValid();
                hdr.detour.depth = 0;
                hdr.detour.number = number;
                hdr.detour.type = hdr.ethernet.type;
                hdr.ethernet.type = ETHERTYPE_DETOUR;
                ways.apply();
            }
        }
    }
}

control Ingress(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    Forward() forward;
    Sequencer() sequencer;
    apply {
        forward.apply(hdr, local, meta);
        sequencer.apply(hdr, local, meta);
    }
}

/* Detector of each port, and the depth in what leaves to a neighbour. */
control Detector(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    register<bit<64>>(PORTS) detector;              /* full, above, crossings 16, said 32 */

    bit<32> alpha = 0;
    bit<1> to_neighbour = 0;
    action settings(bit<32> packets, bit<1> neighbour) {
        alpha = packets;
        to_neighbour = neighbour;
    }
    table ports {
        key = { meta.egress_port: exact; }
        actions = { settings; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (ports.apply().hit) {
            bit<32> port = (bit<32>) meta.egress_port;
            bit<32> depth = (bit<32>) meta.deq_qdepth;
            bit<32> now = (bit<32>) meta.egress_global_timestamp;
            bit<1> above = 0;
            if (depth >= alpha) {
                above = 1;
            }
            bool due = false;
            bit<16> crossings;
            @atomic {
                bit<64> word;
                detector.read(word, port);
                bit<1> full = word[49:49];
                bit<1> before = word[48:48];
                crossings = word[47:32];
                bit<32> said = word[31:0];
                bool drained = full == 1 && depth == 0;
                if (above != before || drained) {
                    crossings = crossings + 1;
                    due = true;
                    if (drained) {
                        full = 0;
                    } else if (above == 1) {
                        full = 1;
                    }
                } else if (above == 1 && now - said >= REPEAT) {
                    due = true;
                }
                if (due) {
                    said = now;
                }
                detector.write(port, 14w0 ++ full ++ above ++ crossings ++ said);
            }
            if (due) {
                local.port = (bit<16>) meta.egress_port;
                local.crossing = crossings;
                local.queue = depth;
                clone_preserving_field_list(CloneType.E2E, MESSAGES, 1);
            }
            bit<16> stated = depth[15:0];
            if (depth > 0xFFFF) {
                stated = 0xFFFF;
            }
            if (hdr.detour.isValid()) {
                hdr.detour.depth = stated;
            } else if (hdr.message.isValid()) {
                hdr.message.depth = stated;
            } else if (to_neighbour == 1) {
                hdr.depth.setValid();
                hdr.depth.depth = stated;
                hdr.depth.type = hdr.ethernet.type;
                hdr.ethernet.type = ETHERTYPE_DEPTH;
            }
        }
    }
}

control Egress(inout headers_t hdr, inout local_t local, inout standard_metadata_t meta) {
    Detector() detector;
    apply {
        if (meta.instance_type == EGRESS_CLONE) {
            /* Of the packet's own headers nothing but IPv4 and ports stays; it goes around, so that ingress finds a neighbour. */
            if (hdr.depth.isValid()) {
                hdr.ethernet.type = hdr.depth.type;
            } else if (hdr.detour.isValid()) {
                hdr.ethernet.type = hdr.detour.type;
            } else if (hdr.message.isValid()) {
                hdr.ethernet.type = hdr.message.type;
            }
            hdr.depth.setInvalid();
            hdr.detour.setInvalid();
            hdr.message.setValid();
            hdr.message.depth = 0;
            hdr.message.port = local.port;
            hdr.message.crossing = local.crossing;
            hdr.message.queue = local.queue;
            hdr.message.type = hdr.ethernet.type;
            hdr.ethernet.type = ETHERTYPE_MESSAGE;
            truncate(72);
            recirculate_preserving_field_list(0);
        } else {
            detector.apply(hdr, local, meta);
        }
    }
}

V1Switch(Parse(), Verify(), Ingress(), Egress(), Update(), Deparse()) main;
