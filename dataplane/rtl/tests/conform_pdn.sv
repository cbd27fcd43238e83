// Runs pdn_attacher under `fanin conform pdn`: events come by standard input, one in each clock; answers go to standard output.
`default_nettype none

module conform_pdn #(
    parameter int DEPTH = 128
);
    localparam int COUNT_W = $clog2(DEPTH) + 1;
    logic clk = 0, rst = 1;
    logic [COUNT_W-1:0] most = 0, waiting, peak;
    logic [7:0] each = 0, kind = 0, first_ttl = 0;
    logic [15:0] max_frame = 0, empty = 0, sent_size, sent_length;
    logic acks = 0, halve = 0, aware = 0;
    logic in_valid = 0, dep_valid = 0;
    logic [1:0] sent_sends;
    logic [2:0] out_fate;
    logic [31:0] sent_number;
    logic [7:0] sent_type, sent_operation, sent_ttl;
    logic [95:0] sent_address;
    logic out_valid, sent_valid;
    longint sequence_no, last, room, each_given, kind_given, max_given, empty_given, acks_given, halve_given, ttl_given, aware_given;
    longint step, event_no, congestion, part, number, length, given, ttl, frame, data;
    reg [8*1024-1:0] header;
    integer got;

    pdn_attacher #(.DEPTH(DEPTH)) attacher (
        .clk, .rst, .most, .each, .kind, .max_frame, .empty, .acks, .halve, .first_ttl, .aware,
        .in_valid(in_valid), .in_dropped(event_no == 0), .in_congestion(congestion[0]), .in_part(part[1:0]),
        .in_address({64'd0, number[31:0]}), .in_number(number[31:0]), .in_length(length[15:0]), .in_operation(given[7:0]),
        .in_ttl(ttl[7:0]), .dep_valid(dep_valid), .dep_free(event_no == 3), .dep_frame(frame[15:0]), .dep_data(data[0]),
        .out_valid, .out_fate, .sent_valid, .sent_sends, .sent_size, .sent_address, .sent_number, .sent_length, .sent_type,
        .sent_operation, .sent_ttl, .waiting, .peak
    );

    task automatic tick;
        #4 clk = 1;
        #1;
        // The address went in with the number, and comes out with it.
        if (out_valid || sent_valid)
            $display("%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d,%0d", out_fate, waiting, peak, sent_sends, sent_size,
                     sent_address[31:0] == sent_number ? sent_number : 32'hffff_ffff, sent_length, sent_type, sent_operation, sent_ttl);
        #3 clk = 0;
    endtask

    initial begin
        last = -1;
        got = $fgets(header, 32'h8000_0000);
        $display("fate,waiting,peak,sends,size,sent_number,sent_length,sent_type,sent_operation,sent_ttl");
        while ($fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,", sequence_no, room, each_given, kind_given, max_given, empty_given,
                       acks_given, halve_given, ttl_given, aware_given) == 10) begin
            got = $fscanf(32'h8000_0000, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", step, event_no, congestion, part, number, length, given, ttl,
                          frame, data);
            if (sequence_no != last) begin
                {in_valid, dep_valid} = 0;
                rst = 1;
                if (room / each_given > DEPTH) $fatal(1, "the queue has more room than DEPTH: %0d", room / each_given);
                most = room / each_given;
                {each, kind, first_ttl} = {each_given[7:0], kind_given[7:0], ttl_given[7:0]};
                {max_frame, empty} = {max_given[15:0], empty_given[15:0]};
                {acks, halve, aware} = {acks_given[0], halve_given[0], aware_given[0]};
                tick;
                rst = 0;
                last = sequence_no;
            end
            in_valid = event_no < 2;
            dep_valid = event_no >= 2;
            tick;
        end
        $finish(0);
    end
endmodule
`default_nettype wire
