// RCM's window of a congested port: what harmful flows may send of it, and when the next one begins; takes a frame in each clock.
//
// Source: RCM (NPC 2017) section 3.4, formulas 3 to 6; the arithmetic, bit for bit, is docs/dev/vectors-registers.md and crates/dataplane/src/rcm.rs.
//
// Frames and times that are over are events of one clock, also while the divider is at work. A measured window takes 64 clocks and a few:
// harmful * W / (harmful + others). A degree takes as many: W_c * degree / 126, rounded up. One of both at a time: `busy`.
`default_nettype none

module rcm_window (
    input wire logic clk,
    input wire logic rst,

    // Settings. Change them while rst is high.
    input wire logic [31:0] window_min,       // not zero, and window_max not below it
    input wire logic [31:0] window_max,
    input wire logic [15:0] max_frame,        // least W_c
    input wire logic each,                    // 1: a degree reduces W_c as it is; 0: as it was measured

    // A window is measured: what both have sent. Not while busy.
    input wire logic measure,
    input wire logic [31:0] in_harmful,
    input wire logic [31:0] in_others,
    // A degree reduces W_c. Not while busy.
    input wire logic reduce,
    input wire logic [5:0] in_degree,
    // A frame has been sent: it counts in W, and of harmful flows within their share in W_c.
    input wire logic sent,
    input wire logic [15:0] in_frame,
    input wire logic in_congested,
    // The time of the window is over. Not with `sent`.
    input wire logic over,

    output logic busy,
    output logic ready,                       // measure or reduce is done: whole and congested are the new ones
    output logic turned,                      // the frame of the clock before has begun a new window
    output logic open,                        // harmful flows may send
    output logic [31:0] whole,
    output logic [31:0] congested,
    output logic [31:0] used,
    output logic [31:0] used_c
);
    typedef enum logic [1:0] {IDLE, SHARE, TAKEN} state_t;
    state_t state;
    logic has;                                // a window was measured
    logic [31:0] measured, from;
    logic [32:0] sum, clamped;
    logic start, done;
    logic [63:0] dividend, quotient;
    logic [32:0] divisor, remainder;
    logic [31:0] floor, new_c, used_now, used_c_now, beyond;
    logic turns;

    divider #(.WIDTH(64), .DIVISOR_W(33)) divide (.clk, .rst, .start, .dividend, .divisor, .done, .quotient, .remainder);

    function automatic logic [31:0] bounded(input logic [31:0] value, input logic [31:0] least, input logic [31:0] most);
        logic [31:0] raised;
        raised = value < least ? least : value;
        raised = raised > most ? most : raised;
        bounded = raised == 0 ? 32'd1 : raised;
    endfunction

    assign busy = state != IDLE;
    assign open = !has || used_c < congested;
    assign sum = {1'b0, in_harmful} + {1'b0, in_others};
    assign clamped = sum < {1'b0, window_min} ? {1'b0, window_min} : sum > {1'b0, window_max} ? {1'b0, window_max} : sum;
    assign from = each ? congested : measured;
    // Of W_c what is left after a degree; of a measured window its share.
    assign new_c = state == TAKEN ? bounded(from - 32'(quotient), {16'd0, max_frame}, whole) : bounded(32'(quotient), {16'd0, max_frame}, whole);
    assign floor = max_frame == 0 ? 32'd1 : {16'd0, max_frame};

    assign used_now = used + 32'(in_frame);
    assign used_c_now = used_c + (sent && in_congested ? 32'(in_frame) : 32'd0);
    assign turns = sent && used_now >= whole;
    // What goes into the next window of harmful flows: less than a frame, and less than their share, so that it begins open.
    always_comb begin
        beyond = used_c_now > congested ? used_c_now - congested : 32'd0;
        if (beyond > (floor < congested ? floor : congested) - 32'd1) beyond = (floor < congested ? floor : congested) - 32'd1;
    end

    always_ff @(posedge clk) begin
        {ready, turned, start} <= '0;
        if (has && (sent || over)) begin
            turned <= turns;
            used <= over ? 32'd0 : !turns ? used_now : used_now - whole > whole - 32'd1 ? whole - 32'd1 : used_now - whole;
            used_c <= over || turns ? beyond : used_c_now;
        end
        case (state)
            IDLE: if (measure) begin
                state <= SHARE;
                whole <= clamped == 0 ? 32'd1 : clamped[31:0];
                // Of nothing all is harmful.
                dividend <= sum == 0 ? 64'(clamped) : 64'(in_harmful) * 64'(clamped[31:0]);
                divisor <= sum == 0 ? 33'd1 : sum;
                start <= 1'b1;
            end else if (reduce && has) begin
                state <= TAKEN;
                {dividend, divisor, start} <= {64'(from) * 64'(in_degree) + 64'd125, 33'd126, 1'b1};
            end
            SHARE: if (done) begin
                state <= IDLE;
                ready <= 1'b1;
                has <= 1'b1;
                {measured, congested} <= {new_c, new_c};
                {used, used_c} <= '0;
            end
            default: if (done) begin
                state <= IDLE;
                ready <= 1'b1;
                congested <= new_c;
            end
        endcase
        if (rst) begin
            state <= IDLE;
            has <= 1'b0;
            {whole, congested, measured, used, used_c} <= '0;
        end
    end
endmodule
`default_nettype wire
