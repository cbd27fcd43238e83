// Runs rimm_sequencer under `fanin conform rimm`: events come by standard input, one in each clock; answers go to standard output.
`default_nettype none

module conform_rimm #(
    parameter int NEIGHBOURS = 3,
    parameter int HASH_BITS = 12
);
    logic clk = 0, rst = 1, ready, valid = 0, flowlet = 0;
    logic [31:0] alpha = 0, give_up = 0, longest = 0, repeat_after = 0, chi = 0, start = 0;
    logic [15:0] room = 0;
    longint sequence_no, last, s_alpha, s_give_up, s_longest, s_repeat, s_flowlet, s_chi, s_bits, s_neighbours, s_room, s_start;
    longint step, event_no, clock, port_no, depth, crossing, from, heard, hash, number, ttl;
    logic out_valid, out_above, out_on, out_over, out_given_up, out_message, out_has_way;
    logic [15:0] out_crossings, out_index, out_way;
    logic [31:0] out_sa, out_sf, out_attached;
    logic [2:0] out_action;
    reg [8*1024-1:0] header;
    integer got, way;
    assign way = out_has_way ? {16'd0, out_way} : -1;

    rimm_sequencer #(.NEIGHBOURS(NEIGHBOURS), .HASH_BITS(HASH_BITS)) sequencer (
        .clk, .rst, .ready, .alpha, .give_up, .longest, .repeat_after, .flowlet, .chi, .room, .start,
        .in_valid(valid), .in_event(event_no[1:0]), .in_clock(clock[31:0]), .in_port(port_no[15:0]), .in_depth(depth[31:0]),
        .in_crossing(crossing[15:0]), .in_from(from[15:0]), .in_heard(heard[15:0]), .in_hash(hash[31:0]), .in_number(number[31:0]),
        .in_ttl(ttl[7:0]), .out_valid, .out_above, .out_on, .out_over, .out_crossings, .out_index, .out_sa, .out_sf, .out_given_up,
        .out_message, .out_action, .out_has_way, .out_way, .out_attached
    );

    task automatic tick;
        #4 clk = 1;
        #1;
        if (out_valid)
            $display("%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d", out_above, out_on, out_over, out_crossings, out_index, out_sa,
                     out_sf, out_given_up, out_message, out_action, way, out_attached);
        #3 clk = 0;
    endtask

    initial begin
        last = -1;
        got = $fgets(header, 32'h8000_0000);
        $display("above,on,over,crossings,index,sa,sf,given_up,message,action,way,attached");
        while ($fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,", sequence_no, s_alpha, s_give_up, s_longest, s_repeat,
                       s_flowlet, s_chi, s_bits, s_neighbours, s_room, s_start) == 11) begin
            if (sequence_no != last) begin
                valid = 0;
                repeat (2) tick;                // what is on its way still has the settings of its sequence
                rst = 1;
                if (s_bits != HASH_BITS || s_neighbours != NEIGHBOURS)
                    $fatal(1, "elaborated for other HASH_BITS or NEIGHBOURS: %0d, %0d", s_bits, s_neighbours);
                {alpha, give_up, longest, repeat_after} = {s_alpha[31:0], s_give_up[31:0], s_longest[31:0], s_repeat[31:0]};
                {flowlet, chi, room, start} = {s_flowlet[0], s_chi[31:0], s_room[15:0], s_start[31:0]};
                tick;
                rst = 0;
                while (!ready) tick;
                last = sequence_no;
            end
            got = $fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", step, event_no, clock, port_no, depth, crossing, from,
                          heard, hash, number, ttl);
            valid = 1;
            tick;
        end
        valid = 0;
        repeat (2) tick;
        $finish(0);
    end
endmodule
`default_nettype wire
