// What s_ecn_marker costs at ports that mark at enqueue: no registers shown. For synthesis alone.
`default_nettype none

module s_ecn_port #(
    parameter int PORTS = 1,
    parameter int FRACTION = 20,
    parameter int RATE_W = 32,
    parameter int INTERVAL_W = 24,
    parameter int FIXED_RATE = 0
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic [INTERVAL_W:0] now,
    input wire logic [RATE_W-1:0] rate,
    input wire logic [15:0] credit,
    input wire logic [19:0] k,
    input wire logic in_valid,
    input wire logic [(PORTS == 1 ? 0 : $clog2(PORTS) - 1):0] in_port,
    input wire logic [15:0] in_length,
    input wire logic in_ect,
    input wire logic [19:0] in_queue,
    output logic out_valid,
    output logic out_mark
);
    s_ecn_marker #(.PORTS(PORTS), .QUEUE_W(20), .FRACTION(FRACTION), .RATE_W(RATE_W), .INTERVAL_W(INTERVAL_W), .FIXED_RATE(RATE_W'(FIXED_RATE))) marker (
        .clk(clk), .rst(rst), .now(now), .rate(rate), .credit(credit), .k(k), .reset_sum(1'b0), .at_dequeue(1'b0),
        .in_valid(in_valid), .in_port(in_port), .in_length(in_length), .in_ect(in_ect), .in_queue(in_queue),
        .dep_valid(1'b0), .dep_port('0), .dep_ect(1'b0), .dep_queue(20'd0),
        .out_valid(out_valid), .out_mark(out_mark), .out_by_slope(), .out_by_k(),
        .dep_out_valid(), .dep_out_mark(), .dep_out_by_k(),
        .show_interval(), .show_sendable(), .show_growth(), .show_added(), .show_sum(), .show_owed()
    );
endmodule
`default_nettype wire
