// RCM's congestion detector of a port: takes an arrival in each clock, and samples the queue after a number of bytes.
//
// Source: RCM (NPC 2017) section 3.2, formulas 1 and 2; IEEE 802.1Qau for the quantisation and the sampling interval; the arithmetic, bit
// for bit, is docs/dev/vectors-registers.md and crates/dataplane/src/rcm.rs.
//
// An arrival that is due is sampled: F_b in the next clock, the degree a bit in each of six clocks after that (the smallest d with
// d * F_b,max >= 63 * F_b, from the top), what is passed on in the next. Then one divider finds the interval in three divisions: the draw
// modulo 301, the mean, and the product by 1000. Meanwhile arrivals are counted and none is due.
`default_nettype none

module rcm_detector #(
    parameter int QUEUE_W = 32,               // queue, Q_eq [B]
    parameter int DIVIDE_W = 42               // mean * 1150
) (
    input wire logic clk,
    input wire logic rst,

    // Settings. Change them while rst is high.
    input wire logic [QUEUE_W-1:0] q_eq,      // not zero
    input wire logic [7:0] w_q,
    input wire logic [31:0] sample,           // bytes between samples without congestion
    input wire logic [8:0] w,                 // weight of the neighbour's degree [2^-8], 256 at most

    // An arrival: the queue that it finds, a random number, the neighbour's degree.
    input wire logic in_valid,
    input wire logic [15:0] in_frame,
    input wire logic [QUEUE_W-1:0] in_queue,
    input wire logic [31:0] in_draw,
    input wire logic in_remote_valid,
    input wire logic [5:0] in_remote,

    output logic out_due,                     // the arrival of one clock ago is sampled
    output logic degree_valid,                // eight clocks later
    output logic [5:0] degree,
    output logic [5:0] passed,
    output logic next_valid,                  // the interval is known, and samples may be due again
    output logic [31:0] next,

    output logic signed [QUEUE_W+1:0] show_offset,
    output logic signed [QUEUE_W+1:0] show_delta,
    output logic signed [QUEUE_W+9:0] show_fb
);
    localparam int FB_W = QUEUE_W + 10;
    localparam int SCALED_W = FB_W + 6;       // 63 * F_b, d * F_b,max

    typedef enum logic [2:0] {IDLE, VALUE, DEGREE, PASS, DRAW, MEAN, PRODUCT} state_t;
    state_t state;
    logic signed [32:0] left;                 // bytes until the next sample; below zero while one is under way
    logic fresh;                              // no arrival yet
    logic [QUEUE_W-1:0] earlier, queue;
    logic [31:0] draw;
    logic remote_valid;
    logic [5:0] remote;
    logic [2:0] at;                           // bit of the degree
    logic [FB_W-1:0] most;                    // F_b,max = Q_eq (2 w_q + 1)
    logic [SCALED_W-1:0] scaled, product;     // 63 F_b; degree * F_b,max
    logic signed [FB_W-1:0] fb_now;
    logic [SCALED_W-1:0] trial;
    logic [8:0] rest;                         // 1 - w
    logic [14:0] weighed;
    logic due, start, done;
    logic [DIVIDE_W-1:0] dividend, quotient;
    logic [9:0] divisor, remainder;
    logic signed [32:0] after;

    divider #(.WIDTH(DIVIDE_W), .DIVISOR_W(10)) divide (.clk, .rst, .start, .dividend, .divisor, .done, .quotient, .remainder);

    assign after = (fresh ? $signed({1'b0, sample}) : left) - (in_valid ? $signed({17'd0, in_frame}) : 33'sd0);
    assign due = in_valid && state == IDLE && after <= 0;
    assign most = FB_W'(q_eq) * FB_W'({w_q, 1'b1});
    assign fb_now = FB_W'(show_offset) + $signed({1'b0, w_q}) * FB_W'(show_delta);
    // One more in this bit: (d + 2^at - 1) F_b,max < 63 F_b.
    assign trial = product + (SCALED_W'(most) << at) - SCALED_W'(most);
    assign rest = 9'd256 - w;
    assign weighed = 15'(rest) * 15'(degree) + 15'(w) * 15'(remote) + 15'd255;

    always_ff @(posedge clk) begin
        {out_due, degree_valid, next_valid, start} <= '0;
        left <= after;
        if (in_valid) fresh <= 1'b0;
        case (state)
            IDLE: if (due) begin
                state <= VALUE;
                out_due <= 1'b1;
                left <= '0;                   // the new interval begins with this arrival
                {queue, draw, remote_valid, remote} <= {in_queue, in_draw, in_remote_valid, in_remote};
                show_offset <= $signed({2'b0, in_queue}) - $signed({2'b0, q_eq});
                show_delta <= $signed({2'b0, in_queue}) - $signed({2'b0, earlier});
            end
            VALUE: begin
                state <= DEGREE;
                show_fb <= fb_now;
                scaled <= fb_now > 0 ? SCALED_W'(fb_now) * SCALED_W'(63) : '0;
                earlier <= queue;
                {product, degree, at} <= {SCALED_W'(0), 6'd0, 3'd5};
            end
            DEGREE: begin
                if (trial < scaled) begin
                    degree <= degree | (6'd1 << at);
                    product <= product + (SCALED_W'(most) << at);
                end
                at <= at - 1'b1;
                if (at == 0) state <= PASS;
            end
            PASS: begin
                state <= DRAW;
                degree_valid <= 1'b1;
                passed <= remote_valid ? 6'(weighed >> 8) : degree;
                {dividend, divisor, start} <= {DIVIDE_W'(draw), 10'd301, 1'b1};
            end
            DRAW: if (done) begin
                state <= MEAN;
                {dividend, divisor, start} <= {DIVIDE_W'(sample), 10'(degree[5:3]) + 10'd1, 1'b1};
                draw <= 32'(remainder) + 32'd850;   // thousandths
            end
            MEAN: if (done) begin
                state <= PRODUCT;
                {dividend, divisor, start} <= {DIVIDE_W'(quotient[31:0]) * DIVIDE_W'(draw[10:0]), 10'd1000, 1'b1};
            end
            default: if (done) begin
                state <= IDLE;
                next_valid <= 1'b1;
                next <= quotient == 0 ? 32'd1 : quotient[31:0];
                left <= after + (quotient == 0 ? 33'sd1 : $signed({1'b0, quotient[31:0]}));
            end
        endcase
        if (rst) begin
            state <= IDLE;
            fresh <= 1'b1;
            {left, earlier, degree, passed, next} <= '0;
            {show_offset, show_delta, show_fb} <= '0;
        end
    end
endmodule
`default_nettype wire
