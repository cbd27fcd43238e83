// RIMM's registers at a switch: detector, alert, depths of neighbours, and pairs of sequence numbers. An event in each clock.
//
// Source: RIMM section III; every register, bit for bit, is docs/dev/vectors-registers.md and crates/dataplane/src/rimm.rs. Ports 0 to NEIGHBOURS - 1 lead
// to switches with RIMM, port NEIGHBOURS to a host.
//
// Each register is read once and written once for an event. Pairs lie in a memory with one port to read and one to write:
//
// clock | what happens
//   1   | the pair is read
//   2   | everything is decided, and the pair is written; the next event of the same pair takes it from here
`default_nettype none

module rimm_sequencer #(
    parameter int NEIGHBOURS = 3,
    parameter int HASH_BITS  = 12,             // 1 or more
    localparam int PORTS     = NEIGHBOURS + 1,
    localparam int PAIR_W    = 6 * 32 + 16 + 2
) (
    input wire logic clk,
    input wire logic rst,                      // then wait for `ready`: pairs are cleared, one in each clock
    output logic ready,

    // Settings. Change them while rst is high.
    input wire logic [31:0] alpha,
    input wire logic [31:0] give_up,
    input wire logic [31:0] longest,
    input wire logic [31:0] repeat_after,
    input wire logic flowlet,
    input wire logic [31:0] chi,
    input wire logic [15:0] room,
    input wire logic [31:0] start,

    // 0: a packet has left a port; 1: a message is back; 2: a new packet; 3: a packet is back.
    input wire logic in_valid,
    input wire logic [1:0] in_event,
    input wire logic [31:0] in_clock,
    input wire logic [15:0] in_port,
    input wire logic [31:0] in_depth,
    input wire logic [15:0] in_crossing,
    input wire logic [15:0] in_from,
    input wire logic [15:0] in_heard,
    input wire logic [31:0] in_hash,
    input wire logic [31:0] in_number,
    input wire logic [7:0] in_ttl,

    // Two clocks later.
    output logic out_valid,
    output logic out_above,
    output logic out_on,
    output logic out_over,
    output logic [15:0] out_crossings,
    output logic [15:0] out_index,
    output logic [31:0] out_sa,
    output logic [31:0] out_sf,
    output logic out_given_up,
    output logic out_message,
    output logic [2:0] out_action,             // 0 goes on, 1 detour, 2 release, 3 late, 4 again, 5 let go, 6 stays
    output logic out_has_way,
    output logic [15:0] out_way,
    output logic [31:0] out_attached
);
    localparam logic [15:0] SEVERAL = 16'hffff;

    // 1: the pair is read; after a reset all of them are written.
    logic [PAIR_W-1:0] pairs [0:(1 << HASH_BITS)-1];
    logic [PAIR_W-1:0] stored, changed, written;
    logic [HASH_BITS-1:0] clearing, index, index_before, place;
    logic valid, before_valid, writes;
    logic [1:0] event_no;
    logic [31:0] clock, depth, number;
    logic [15:0] port_no, crossing, from, heard;
    logic [7:0] ttl;

    assign place = in_hash[31 -: HASH_BITS];

    always_ff @(posedge clk) begin
        if (rst) begin
            ready <= 1'b0;
            clearing <= '0;
            valid <= 1'b0;
            before_valid <= 1'b0;
        end else begin
            if (!ready) clearing <= clearing + 1'b1;
            if (&clearing) ready <= 1'b1;
            valid <= in_valid && ready;
            before_valid <= writes;
        end
        stored <= pairs[place];
        index <= place;
        event_no <= in_event;
        clock <= in_clock;
        depth <= in_depth;
        number <= in_number;
        port_no <= in_port;
        crossing <= in_crossing;
        from <= in_from;
        heard <= in_heard;
        ttl <= in_ttl;
        if (!ready || writes) pairs[!ready ? clearing : index] <= !ready ? {start, start, 146'd0} : changed;
        index_before <= index;
        written <= changed;
    end

    // 2: the pair, of the memory or of the event before.
    logic [31:0] sa, sf, began, moved, needed, last;
    logic [15:0] pair_port;
    logic pair_over, active;
    assign {sa, sf, began, moved, needed, last, pair_port, pair_over, active} =
        before_valid && index_before == index ? written : stored;

    // Registers of the ports.
    logic [PORTS-1:0] above, full, on, over, busy, known;
    logic [16*PORTS-1:0] crossings, alert_crossing, depths;    // 16 bits of each port
    logic [32*PORTS-1:0] said, since;
    logic above_p, full_p, on_p, over_p, busy_p;
    logic [15:0] crossings_p, alert_crossing_p;
    logic [31:0] said_p, since_p;
    localparam int PORT_W = $clog2(PORTS) == 0 ? 1 : $clog2(PORTS);
    logic [PORT_W-1:0] p;
    assign p = port_no[PORT_W-1:0];
    assign {above_p, full_p, on_p, over_p, busy_p} = {above[p], full[p], on[p], over[p], busy[p]};
    assign {crossings_p, alert_crossing_p} = {crossings[16*p +: 16], alert_crossing[16*p +: 16]};
    assign {said_p, since_p} = {said[32*p +: 32], since[32*p +: 32]};

    // The neighbour with the least depth: with room and without an alert, or of all that have been heard.
    logic best_found [0:PORTS], any_found [0:PORTS];
    logic [15:0] best_depth [0:PORTS], any_depth [0:PORTS], best_port [0:PORTS], any_port [0:PORTS];
    assign {best_found[0], any_found[0], best_depth[0], any_depth[0], best_port[0], any_port[0]} = '0;
    for (genvar i = 0; i < PORTS; i++) begin : neighbour
        logic speaks, candidate, usable, better, less;
        logic [15:0] its_depth;
        assign speaks = valid && event_no != 2'd0 && from == i;
        assign its_depth = speaks ? heard : depths[16*i +: 16];
        assign candidate = (known[i] || speaks) && port_no != i;
        assign usable = candidate && its_depth < room && !on[i];
        assign better = usable && (!best_found[i] || its_depth < best_depth[i]);
        assign less = candidate && (!any_found[i] || its_depth < any_depth[i]);
        assign best_found[i+1] = best_found[i] || usable;
        assign best_depth[i+1] = better ? its_depth : best_depth[i];
        assign best_port[i+1] = better ? i : best_port[i];
        assign any_found[i+1] = any_found[i] || candidate;
        assign any_depth[i+1] = less ? its_depth : any_depth[i];
        assign any_port[i+1] = less ? i : any_port[i];
        always_ff @(posedge clk) begin
            if (rst) known[i] <= 1'b0;
            else if (speaks) known[i] <= 1'b1;
            if (speaks) depths[16*i +: 16] <= heard;
        end
    end
    logic found;
    assign found = best_found[PORTS];

    // Detector (0) and alert (1 to 3).
    logic is_above, drained, crosses, due, news, was_on, over_n, alert, congested;
    logic [15:0] ahead;
    assign is_above = depth >= alpha;
    assign drained = full_p && depth == 0;
    assign crosses = is_above != above_p || drained;
    assign due = valid && event_no == 2'd0 && (crosses || (is_above && clock - said_p >= repeat_after));
    assign ahead = crossing - alert_crossing_p;
    assign news = valid && event_no == 2'd1 && ahead != 0 && !ahead[15];
    assign was_on = on_p && ahead <= 16'd1;
    assign over_n = over_p || (on_p && clock - since_p >= give_up);
    assign alert = on_p && !over_n;
    assign congested = on_p && over_n;

    for (genvar i = 0; i < PORTS; i++) begin : port_registers
        logic mine;
        assign mine = port_no == i;
        always_ff @(posedge clk) begin
            if (rst) begin
                {above[i], full[i], on[i], over[i], busy[i]} <= '0;
                {crossings[16*i +: 16], alert_crossing[16*i +: 16]} <= '0;
                {said[32*i +: 32], since[32*i +: 32]} <= '0;
            end else if (mine && due) begin
                said[32*i +: 32] <= clock;
                if (crosses) begin
                    above[i] <= is_above;
                    full[i] <= !drained && (full_p || is_above);
                    crossings[16*i +: 16] <= crossings_p + 1'b1;
                end
            end else if (mine && news) begin
                alert_crossing[16*i +: 16] <= crossing;
                on[i] <= is_above;
                busy[i] <= is_above || (busy_p && depth != 0);
                if (is_above && !was_on) begin
                    since[32*i +: 32] <= clock;
                    over[i] <= 1'b0;
                end
            end else if (mine && writes) over[i] <= over_n;
        end
    end

    // The pair is given up at its bounds.
    logic out, active1, ends, too_long, stalled, outlived, ends_congested;
    assign out = sa != sf;
    assign active1 = active && (!flowlet || out || clock - last < chi);
    assign ends_congested = out && congested;
    assign too_long = clock - began >= longest;
    assign stalled = out && clock - moved >= give_up;
    assign outlived = !flowlet && out && clock - needed >= give_up;
    assign ends = (out || active1) && (ends_congested || too_long || stalled || outlived);

    logic out1, active2, over1, over2;
    logic [31:0] sf1, needed1;
    assign out1 = out && !ends;
    assign active2 = active1 && !ends;
    assign over1 = ends ? !ends_congested && too_long : pair_over;
    assign sf1 = ends ? sa : sf;
    assign needed1 = busy_p ? clock : needed;
    assign over2 = over1 && alert;
    assign writes = valid && event_no[1];

    // A new packet (2).
    logic passes, wanted, active3, takes;
    assign passes = !alert && pair_port != port_no && pair_port != SEVERAL;
    assign wanted = !passes && (alert ? !over1 : flowlet ? active2 && clock - last < chi : out1);
    assign active3 = !alert && flowlet ? wanted : active2;
    assign takes = wanted && found && ttl >= 8'd8;

    logic [2:0] action2, action3;
    logic [PAIR_W-1:0] pair2, pair3;
    assign action2 = !wanted ? 3'd0 : takes ? 3'd1 : 3'd6;
    assign pair2 = passes ? {sa, sf1, began, moved, needed, last, pair_port, over1, active2} : {
        takes ? sa + 32'd1 : sa,
        sf1,
        takes && !out1 && !active3 ? clock : began,
        takes && !out1 ? clock : moved,
        needed1,
        clock,
        !takes ? pair_port : !out1 ? port_no : pair_port != port_no ? SEVERAL : pair_port,
        over2,
        takes ? flowlet : active3
    };

    // A packet that is back (3).
    logic late, gone, awaited, again, frees;
    assign late = number - sf1 >= sa - sf1;
    assign gone = late && (!alert || over2);
    assign awaited = number == sf1;
    assign again = found && ttl >= 8'd8;
    assign action3 = gone ? 3'd3 : !alert && awaited ? 3'd2 : again ? 3'd4 : late ? 3'd3 : 3'd5;
    assign frees = action3 == 3'd2 || (action3 == 3'd5 && awaited);
    assign pair3 = {sa, frees ? sf1 + 32'd1 : sf1, began, frees ? clock : moved, needed1, last, pair_port, over2, active2};
    assign changed = event_no[0] ? pair3 : pair2;

    logic [2:0] action;
    logic detours;
    assign action = !writes ? 3'd0 : event_no[0] ? action3 : action2;
    assign detours = action == 3'd1 || action == 3'd4;

    always_ff @(posedge clk) begin
        out_valid <= valid && !rst;
        out_above <= due && crosses ? is_above : above_p;
        out_crossings <= crossings_p + 16'(due && crosses);
        out_on <= news ? is_above : on_p;
        out_over <= news ? over_p && !(is_above && !was_on) : writes ? over_n : over_p;
        out_index <= writes ? 16'(index) : 16'd0;
        out_sa <= writes ? changed[PAIR_W-1 -: 32] : 32'd0;
        out_sf <= writes ? changed[PAIR_W-33 -: 32] : 32'd0;
        out_given_up <= writes && ends;
        out_message <= due && any_found[PORTS];
        out_action <= action;
        out_has_way <= detours || (due && any_found[PORTS]);
        out_way <= found ? best_port[PORTS] : any_port[PORTS];
        out_attached <= action == 3'd1 ? sa : action == 3'd4 ? number : 32'd0;
    end
endmodule
`default_nettype wire
