// S-ECN's marker for the ports of a switch: takes an arrival in each clock, and at the same time a departure, of any ports.
//
// Source: S-ECN (ICNP 2018) section IV-C; the arithmetic, bit for bit, is docs/dev/vectors-registers.md and crates/dataplane/src/s_ecn.rs.
//
// The sum is a loop of one clock. Everything that does not depend on it is computed before: growth, growth + credit,
// growth - R*I, growth - R*I - 1, growth - 2*R*I. In the loop five adders work side by side, and their signs choose the next sum.
//
// clock | what is in the registers
//   1   | interval I
//  2, 3 | R*I
//   4   | growth P - R*I
//   5   | the five terms of the loop
//   6   | sum, decision
`default_nettype none

module s_ecn_marker #(
    parameter int PORTS      = 1,             // of one rate and with one K, whose sums and clocks of the last arrival lie side by side
    parameter int FRACTION   = 20,            // fraction bits of bytes
    parameter int RATE_W     = 32,            // R [2^-FRACTION B per clock]
    parameter int INTERVAL_W = 24,            // I [clocks], saturating
    parameter int LENGTH_W   = 16,            // P [B]
    parameter int QUEUE_W    = 32,            // queue, K [B]
    parameter int OWED_W     = 32,            // marks earned and not yet given, at dequeue
    parameter int CLOCK_W    = INTERVAL_W + 1, // free-running counter; it needs one bit more than the interval
    parameter logic [RATE_W-1:0] FIXED_RATE = 0, // R, where it is known at synthesis; 0: the input
    localparam int PORT_W    = PORTS == 1 ? 1 : $clog2(PORTS),
    localparam int PRODUCT_W = RATE_W + INTERVAL_W,
    localparam int BYTES_W   = LENGTH_W + FRACTION,
    localparam int SUM_W     = BYTES_W + 1
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic [CLOCK_W-1:0] now,       // counts clocks; in PORTS clocks it moves by less than 2^CLOCK_W - 2^INTERVAL_W

    // Settings. Change them while rst is high.
    input wire logic [RATE_W-1:0] rate,
    input wire logic [LENGTH_W-1:0] credit,
    input wire logic [QUEUE_W-1:0] k,
    input wire logic reset_sum,               // 1: a mark takes the whole sum
    input wire logic at_dequeue,              // 1: marks are given to packets that leave

    // An arrival: P with preamble and gap, the queue that it finds.
    input wire logic in_valid,
    input wire logic [PORT_W-1:0] in_port,
    input wire logic [LENGTH_W-1:0] in_length,
    input wire logic in_ect,                  // codepoint is not 0
    input wire logic [QUEUE_W-1:0] in_queue,

    // A departure: the queue that it leaves behind. With an arrival in the same clock, it comes before it.
    input wire logic dep_valid,
    input wire logic [PORT_W-1:0] dep_port,
    input wire logic dep_ect,
    input wire logic [QUEUE_W-1:0] dep_queue,

    // The decision, six clocks later.
    output logic out_valid,
    output logic out_mark,
    output logic out_by_slope,
    output logic out_by_k,
    output logic dep_out_valid,
    output logic dep_out_mark,
    output logic dep_out_by_k,

    // Registers, for checks; where nothing is connected to them they cost nothing.
    output logic [INTERVAL_W-1:0] show_interval,
    output logic [PRODUCT_W-1:0] show_sendable,
    output logic signed [PRODUCT_W:0] show_growth,
    output logic signed [SUM_W:0] show_added,
    output logic signed [SUM_W-1:0] show_sum,
    output logic [OWED_W-1:0] show_owed
);
    localparam logic [INTERVAL_W-1:0] LONGEST = {INTERVAL_W{1'b1}};
    localparam int TERM_W = BYTES_W + 3;      // the loop's terms: from -2^(BYTES_W + 2) on

    // 1: interval. `stale`: the counter has gone past the longest interval since the last arrival, or there was none. In each clock one
    // port is looked at in its turn, so that the counter may wrap.
    logic [CLOCK_W-1:0] last [0:PORTS-1];
    logic [CLOCK_W-1:0] elapsed, of_turn;
    logic [PORTS-1:0] stale;
    logic [PORT_W-1:0] turn, port1, d_port1;
    logic beyond;
    logic v1, ect1, by_k1, d1, d_ect1, d_by_k1;
    logic [INTERVAL_W-1:0] interval1;
    logic [LENGTH_W-1:0] length1;
    assign elapsed = now - last[in_port];
    assign of_turn = now - last[turn];
    assign beyond = elapsed >= CLOCK_W'(LONGEST);

    always_ff @(posedge clk) begin
        if (rst) begin
            turn <= '0;
            stale <= '1;
        end else begin
            turn <= turn == PORT_W'(PORTS - 1) ? '0 : turn + 1'b1;
            if (of_turn >= CLOCK_W'(LONGEST)) stale[turn] <= 1'b1;
            if (in_valid) stale[in_port] <= 1'b0;
        end
        if (in_valid) last[in_port] <= now;
        interval1 <= (stale[in_port] || beyond) ? LONGEST : elapsed[INTERVAL_W-1:0];
        length1 <= in_length;
        ect1 <= in_ect;
        by_k1 <= !at_dequeue && in_queue >= k;
        d_ect1 <= dep_ect;
        d_by_k1 <= at_dequeue && dep_queue >= k;
        port1 <= in_port;
        d_port1 <= dep_port;
    end

    // 2, 3: R*I, in two clocks for the registers of a hard multiplier.
    logic [RATE_W-1:0] r;
    logic [PRODUCT_W-1:0] product2, product3;
    logic [INTERVAL_W-1:0] interval2, interval3, interval4, interval5;
    logic [LENGTH_W-1:0] length2, length3;
    logic v2, v3, v4, v5, d2, d3, d4, d5;
    logic ect2, ect3, ect4, ect5, by_k2, by_k3, by_k4, by_k5;
    logic d_ect2, d_ect3, d_ect4, d_ect5, d_by_k2, d_by_k3, d_by_k4, d_by_k5;
    logic [PORT_W-1:0] port2, port3, port4, port5, d_port2, d_port3, d_port4, d_port5;
    assign r = FIXED_RATE != 0 ? FIXED_RATE : rate;

    always_ff @(posedge clk) begin
        product2 <= r * interval1;
        product3 <= product2;
        {length2, length3} <= {length1, length2};
        {port2, port3, port4, port5} <= {port1, port2, port3, port4};
        {d_port2, d_port3, d_port4, d_port5} <= {d_port1, d_port2, d_port3, d_port4};
        {interval2, interval3, interval4, interval5} <= {interval1, interval2, interval3, interval4};
        {ect2, ect3, ect4, ect5} <= {ect1, ect2, ect3, ect4};
        {by_k2, by_k3, by_k4, by_k5} <= {by_k1, by_k2, by_k3, by_k4};
        {d_ect2, d_ect3, d_ect4, d_ect5} <= {d_ect1, d_ect2, d_ect3, d_ect4};
        {d_by_k2, d_by_k3, d_by_k4, d_by_k5} <= {d_by_k1, d_by_k2, d_by_k3, d_by_k4};
    end

    // 4: growth. Where it is not above zero nothing is marked, and R*I is not asked for again; where it is, R*I < P has BYTES_W bits.
    logic signed [PRODUCT_W:0] growth, growth4, growth5;
    logic [PRODUCT_W-1:0] product4, product5;
    logic signed [TERM_W-1:0] clamped;
    localparam logic signed [TERM_W-1:0] LEAST = {2'b11, {(TERM_W-2){1'b0}}};
    assign growth = $signed((PRODUCT_W + 1)'(length3) << FRACTION) - $signed({1'b0, product3});
    // Any growth below -2^(BYTES_W + 1) ends at the credit, whatever the sum.
    assign clamped = growth4 < $signed({{(PRODUCT_W + 1 - TERM_W){1'b1}}, LEAST}) ? LEAST : growth4[TERM_W-1:0];

    // 5: what the loop adds to the sum.
    logic signed [TERM_W-1:0] plain5, with_credit5, less5, less_one5, less_two5, credit_f, sendable_f;
    logic [BYTES_W-1:0] sendable5;
    logic grows5;
    assign credit_f = $signed(TERM_W'(credit) << FRACTION);
    assign sendable_f = $signed({{(TERM_W - BYTES_W){1'b0}}, product4[BYTES_W-1:0]});

    always_ff @(posedge clk) begin
        growth4 <= growth;
        product4 <= product3;
        growth5 <= growth4;
        product5 <= product4;
        grows5 <= growth4 > 0;
        plain5 <= clamped;
        with_credit5 <= clamped + credit_f;
        less5 <= clamped - sendable_f;
        less_one5 <= clamped - sendable_f - 1'b1;           // not below zero with the sum: added > R*I
        less_two5 <= clamped - (sendable_f <<< 1);          // below zero with the sum: added - R*I < R*I
        sendable5 <= product4[BYTES_W-1:0];
    end

    // 6: the loop.
    logic signed [SUM_W-1:0] sums [0:PORTS-1];
    logic signed [SUM_W-1:0] sum, sum_next;
    logic signed [TERM_W:0] added, over_floor, over, over_one, over_two;
    logic signed [SUM_W-1:0] floor, marked, waits, kept;
    logic by_slope, under;
    logic [OWED_W-1:0] marks_owed [0:PORTS-1];
    logic [OWED_W-1:0] owed, owed_next;
    logic takes, earns;
    logic signed [TERM_W:0] sum_wide;
    assign sum = sums[port5];
    assign owed = marks_owed[d_port5];
    assign sum_wide = (TERM_W + 1)'(sum);
    assign added = sum_wide + (TERM_W + 1)'(plain5);
    assign over_floor = sum_wide + (TERM_W + 1)'(with_credit5);
    assign over = sum_wide + (TERM_W + 1)'(less5);
    assign over_one = sum_wide + (TERM_W + 1)'(less_one5);
    assign over_two = sum_wide + (TERM_W + 1)'(less_two5);
    assign under = over_floor[TERM_W];
    assign by_slope = grows5 && !over_one[TERM_W];
    assign earns = v5 && at_dequeue && by_slope && ect5;
    assign takes = d5 && at_dequeue && d_ect5 && owed != 0;
    // Of the port that is shown: that of the arrival, or of the departure.
    assign owed_next = v5 ? marks_owed[port5] + OWED_W'(earns) - OWED_W'(takes && port5 == d_port5) : owed - OWED_W'(takes);

    assign floor = -$signed(SUM_W'(credit) << FRACTION);
    assign waits = $signed({1'b0, sendable5});
    assign marked = reset_sum ? '0 : over_two[TERM_W] ? over[SUM_W-1:0] : waits;
    assign kept = under ? floor : added[SUM_W-1:0];
    assign sum_next = !by_slope ? kept : ect5 ? marked : waits;

    always_ff @(posedge clk) begin
        if (rst) begin
            {v1, v2, v3, v4, v5, out_valid} <= '0;
            {d1, d2, d3, d4, d5, dep_out_valid} <= '0;
            for (int i = 0; i < PORTS; i++) begin
                sums[i] <= '0;
                marks_owed[i] <= '0;
            end
        end else begin
            {v1, v2, v3, v4, v5, out_valid} <= {in_valid, v1, v2, v3, v4, v5};
            {d1, d2, d3, d4, d5, dep_out_valid} <= {dep_valid, d1, d2, d3, d4, d5};
            if (v5) sums[port5] <= sum_next;
            for (int i = 0; i < PORTS; i++)
                marks_owed[i] <= marks_owed[i] + OWED_W'(earns && port5 == PORT_W'(i)) - OWED_W'(takes && d_port5 == PORT_W'(i));
        end
        out_by_slope <= v5 && by_slope;
        out_by_k <= v5 && by_k5;
        out_mark <= v5 && ect5 && !at_dequeue && (by_slope || by_k5);
        dep_out_by_k <= d5 && d_by_k5;
        dep_out_mark <= d5 && d_ect5 && at_dequeue && (owed != 0 || d_by_k5);
        show_interval <= interval5;
        show_sendable <= product5;
        show_growth <= growth5;
        show_added <= under ? (SUM_W + 1)'(floor) : added[SUM_W:0];
        show_sum <= sum_next;
        show_owed <= owed_next;
    end
endmodule
`default_nettype wire
