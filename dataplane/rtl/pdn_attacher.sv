// PDN's notification queue of one port: what becomes of a drop, and how notifications leave. In each clock one may come and one may leave.
//
// Source: PDN section IV; decisions, bit for bit, are docs/dev/vectors-registers.md and crates/dataplane/src/pdn.rs. In a clock in which one leaves and
// one comes, the one that leaves makes room first.
`default_nettype none

module pdn_attacher #(
    parameter int DEPTH     = 128,             // notifications, a power of two; `most` may be fewer
    parameter int ADDRESS_W = 96,              // addresses and ports, which pass through: 96 with IPv4, 288 with IPv6
    localparam int COUNT_W  = $clog2(DEPTH) + 1,
    localparam int PLACE_W  = $clog2(DEPTH),
    localparam int NOTICE_W = ADDRESS_W + 64 + 8
) (
    input wire logic clk,
    input wire logic rst,

    // Settings. Change them while rst is high.
    input wire logic [COUNT_W-1:0] most,       // room / each
    input wire logic [7:0] each,               // a notification [B]
    input wire logic [7:0] kind,               // its type: 1 with IPv4, 2 with IPv6
    input wire logic [15:0] max_frame,
    input wire logic [15:0] empty,             // frame that carries nothing else [B]
    input wire logic acks,
    input wire logic halve,
    input wire logic [7:0] first_ttl,
    input wire logic aware,                    // the next hop runs PDN

    // A packet was dropped (in_dropped), or a notification came from a neighbour.
    input wire logic in_valid,
    input wire logic in_dropped,
    input wire logic in_congestion,
    input wire logic [1:0] in_part,            // 1 data, 2 acknowledgment without data
    input wire logic [ADDRESS_W-1:0] in_address,
    input wire logic [31:0] in_number,
    input wire logic [15:0] in_length,
    input wire logic [7:0] in_operation,
    input wire logic [7:0] in_ttl,

    // A frame is about to leave (dep_frame), or the wire is free (dep_free); dep_data: a packet may be sent.
    input wire logic dep_valid,
    input wire logic dep_free,
    input wire logic [15:0] dep_frame,
    input wire logic dep_data,

    // One clock later.
    output logic out_valid,
    output logic [2:0] out_fate,               // 0 none, 1 queued, 2 no room, 3 expired, 4 next hop without PDN
    output logic sent_valid,                   // answers dep_valid
    output logic [1:0] sent_sends,             // 0 none, 1 at the end of the frame, 2 in an empty frame
    output logic [15:0] sent_size,
    output logic [ADDRESS_W-1:0] sent_address,
    output logic [31:0] sent_number,
    output logic [15:0] sent_length,
    output logic [7:0] sent_type,
    output logic [7:0] sent_operation,
    output logic [7:0] sent_ttl,
    output logic [COUNT_W-1:0] waiting,
    output logic [COUNT_W-1:0] peak
);
    logic [NOTICE_W-1:0] memory [0:DEPTH-1];
    logic [PLACE_W-1:0] head, tail;
    logic [COUNT_W-1:0] left, waiting_next;

    // What leaves.
    logic attaches, alone, pops;
    logic [16:0] with_notice;
    assign with_notice = 17'(dep_frame) + 17'(each);
    assign attaches = dep_valid && !dep_free && waiting != 0 && with_notice <= 17'(max_frame);
    assign alone = dep_valid && dep_free && waiting != 0 && !dep_data;
    assign pops = attaches || alone;

    // What comes.
    logic notified, due, expired, takes, pushes;
    logic [7:0] operation, ttl;
    assign left = waiting - COUNT_W'(pops);
    assign notified = in_congestion && (in_part == 2'd1 || (in_part == 2'd2 && acks));
    assign expired = !in_dropped && in_ttl <= 8'd1;
    assign due = in_dropped ? notified : !expired;
    assign operation = !in_dropped ? in_operation : in_part == 2'd2 ? 8'd3 : halve ? 8'd1 : 8'd2;
    assign ttl = in_dropped ? first_ttl : in_ttl - 8'd1;
    assign takes = left < most;
    assign pushes = in_valid && due && aware && takes;
    assign waiting_next = left + COUNT_W'(pushes);

    always_ff @(posedge clk) begin
        if (rst) begin
            head <= '0;
            tail <= '0;
            waiting <= '0;
            peak <= '0;
            out_valid <= 1'b0;
            sent_valid <= 1'b0;
        end else begin
            head <= head + PLACE_W'(pops);
            tail <= tail + PLACE_W'(pushes);
            waiting <= waiting_next;
            if (waiting_next > peak) peak <= waiting_next;
            out_valid <= in_valid;
            sent_valid <= dep_valid;
        end
        if (pushes) memory[tail] <= {in_address, in_number, in_length, kind, operation, ttl};
        out_fate <= !in_valid ? 3'd0 : expired ? 3'd3 : !due ? 3'd0 : !aware ? 3'd4 : takes ? 3'd1 : 3'd2;
        sent_sends <= {alone, attaches};
        sent_size <= attaches ? with_notice[15:0] : dep_valid && !dep_free ? dep_frame : alone ? empty : 16'd0;
        {sent_address, sent_number, sent_length, sent_type, sent_operation, sent_ttl} <= pops ? memory[head] : '0;
    end
endmodule
`default_nettype wire
