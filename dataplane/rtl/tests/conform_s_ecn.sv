// Runs s_ecn_marker under `fanin conform s-ecn`: rows come by standard input, one in each clock; answers go to standard output.
//
// With FRACTION = 0 bytes have no fraction bits, as they need none where R is one byte per clock: decisions alone are answered.
`default_nettype none

module conform_s_ecn #(
    parameter int FRACTION = 20,
    parameter int RATE_W = 32,
    parameter int INTERVAL_W = 24
);
    localparam int LATENCY = 6;
    logic clk = 0, rst = 1;
    logic [63:0] now = 0;
    logic [RATE_W-1:0] rate = 0;
    logic [31:0] k = 0, queue = 0;
    logic [15:0] credit = 0, wire_length = 0;
    logic reset_sum = 0, at_dequeue = 0, arrives = 0, departs = 0, ect = 0;
    logic out_valid, out_mark, out_by_slope, out_by_k, dep_out_valid, dep_out_mark, dep_out_by_k;
    logic [INTERVAL_W-1:0] interval;
    logic [RATE_W+INTERVAL_W-1:0] sendable;
    logic signed [RATE_W+INTERVAL_W:0] growth;
    logic signed [FRACTION+17:0] added;
    logic signed [FRACTION+16:0] sum;
    logic [31:0] owed;

    s_ecn_marker #(.CLOCK_W(64), .FRACTION(FRACTION), .RATE_W(RATE_W), .INTERVAL_W(INTERVAL_W)) marker (
        .clk, .rst, .now, .rate, .credit, .k, .reset_sum, .at_dequeue,
        .in_valid(arrives), .in_port(1'b0), .in_length(wire_length), .in_ect(ect), .in_queue(queue),
        .dep_valid(departs), .dep_port(1'b0), .dep_ect(ect), .dep_queue(queue),
        .out_valid, .out_mark, .out_by_slope, .out_by_k, .dep_out_valid, .dep_out_mark, .dep_out_by_k,
        .show_interval(interval), .show_sendable(sendable), .show_growth(growth), .show_added(added), .show_sum(sum),
        .show_owed(owed)
    );

    task automatic tick;
        #4 clk = 1;
        #1;
        if (FRACTION != 20 && (out_valid || dep_out_valid))
            $display("%0d,%0d,%0d", out_valid && out_by_slope, out_valid ? out_by_k : dep_out_by_k, out_valid ? out_mark : dep_out_mark);
        else if (out_valid)
            $display("%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d", out_by_slope, out_by_k, out_mark, interval, sendable, growth, added, sum, owed);
        else if (dep_out_valid)
            $display("0,%0d,%0d,0,0,0,0,0,%0d", dep_out_by_k, dep_out_mark, owed);
        #3 clk = 0;
    endtask

    longint sequence_no, last, rate_bps, clock_ps, packet, departure, time_ps, frame, ecn, clocks;
    longint rate_given, credit_given, k_given, reset_given, dequeue_given;
    reg [8*1024-1:0] header;
    integer got;

    initial begin
        last = -1;
        got = $fgets(header, 32'h8000_0000);
        if (FRACTION != 20) $display("by_slope,by_k,mark");
        else $display("by_slope,by_k,mark,interval,sendable,growth,added,sum,owed");
        while ($fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,", sequence_no, rate_bps, clock_ps, rate_given, credit_given, k_given, reset_given, dequeue_given) == 8) begin
            if (sequence_no != last) begin
                {arrives, departs} = 0;
                repeat (LATENCY) tick;                  // what is on its way still has the settings of its sequence
                rst = 1;
                rate = rate_given[31:0] >> (20 - FRACTION);
                {credit, k} = {credit_given[15:0], k_given[31:0]};
                {reset_sum, at_dequeue} = {reset_given[0], dequeue_given[0]};
                tick;
                rst = 0;
                last = sequence_no;
            end
            got = $fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d", packet, departure, time_ps, clocks, frame, wire_length, ecn, queue);
            now = clocks;
            ect = ecn != 0;
            arrives = departure == 0;
            departs = departure != 0;
            tick;
        end
        {arrives, departs} = 0;
        repeat (LATENCY) tick;
        $finish(0);
    end
endmodule
`default_nettype wire
