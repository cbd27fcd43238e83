// Runs rcm_detector and rcm_window under `fanin conform rcm`: events come by standard input, and each is over before the next.
`default_nettype none

module conform_rcm;
    logic clk = 0, rst = 1, arrives = 0, measure = 0, reduce = 0, sent = 0, over = 0;
    logic [31:0] q_eq = 1, sample = 64, window_min = 1, window_max = 1;
    logic [7:0] w_q = 0;
    logic [8:0] w = 0;
    logic [15:0] max_frame = 1;
    logic each = 0;
    longint sequence_no, last, s_q_eq, s_w_q, s_sample, s_w, s_min, s_max, s_frame, s_each;
    longint step, event_no, frame, queue, draw, remote, harmful, others, given, share;
    logic due, degree_valid, next_valid, busy, ready, turned, open;
    logic [5:0] degree, passed;
    logic [31:0] next, whole, congested, used, used_c;
    logic signed [33:0] offset, delta;
    logic signed [41:0] fb;
    logic sampled, turns;
    reg [8*1024-1:0] header;
    integer got;

    rcm_detector detector (
        .clk, .rst, .q_eq, .w_q, .sample, .w, .in_valid(arrives), .in_frame(frame[15:0]), .in_queue(queue[31:0]), .in_draw(draw[31:0]),
        .in_remote_valid(remote >= 0), .in_remote(remote[5:0]), .out_due(due), .degree_valid, .degree, .passed, .next_valid, .next,
        .show_offset(offset), .show_delta(delta), .show_fb(fb)
    );
    rcm_window window (
        .clk, .rst, .window_min, .window_max, .max_frame, .each, .measure, .in_harmful(harmful[31:0]), .in_others(others[31:0]), .reduce,
        .in_degree(given[5:0]), .sent, .in_frame(frame[15:0]), .in_congested(share == 0), .over, .busy, .ready, .turned, .open, .whole,
        .congested, .used, .used_c
    );

    task automatic tick;
        #4 clk = 1;
        #1;
        #3 clk = 0;
    endtask

    initial begin
        last = -1;
        got = $fgets(header, 32'h8000_0000);
        $display("sampled,offset,delta,fb,degree,next,passed,whole,congested,used,used_c,turned,open");
        while ($fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,", sequence_no, s_q_eq, s_w_q, s_sample, s_w, s_min, s_max, s_frame,
                       s_each) == 9) begin
            if (sequence_no != last) begin
                rst = 1;
                {q_eq, w_q, sample, w} = {s_q_eq[31:0], s_w_q[7:0], s_sample[31:0], s_w[8:0]};
                {window_min, window_max, max_frame, each} = {s_min[31:0], s_max[31:0], s_frame[15:0], s_each[0]};
                tick;
                rst = 0;
                last = sequence_no;
            end
            got = $fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", step, event_no, frame, queue, draw, remote, harmful, others,
                          given, share);
            arrives = event_no == 0;
            measure = event_no == 1;
            reduce = event_no == 2;
            sent = event_no == 3;
            over = event_no == 4;
            tick;
            {arrives, measure, reduce, sent, over} = '0;
            {sampled, turns} = {due, turned};
            if (sampled) while (!next_valid) tick;
            while (busy) tick;
            if (sampled)
                $write("1,%0d,%0d,%0d,%0d,%0d,%0d", offset, delta, fb, degree, next, passed);
            else
                $write("0,0,0,0,0,0,0");
            $display(",%0d,%0d,%0d,%0d,%0d,%0d", whole, congested, used, used_c, turns, open);
        end
        $finish(0);
    end
endmodule
`default_nettype wire
