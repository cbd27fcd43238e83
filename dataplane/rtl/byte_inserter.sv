// Puts bytes into frames that pass as a stream (AXI4-Stream): before the EtherType, as RIMM's headers, or at the end, as PDN's
// notifications with the EtherType that names them. A beat in each clock, one clock later.
//
// A frame becomes longer, so that up to MOST bytes wait from the place of the insertion on. They leave after the frame's last beat, while
// `in_ready` is 0. DATA_W is 64 (125 MHz), 512 (322 MHz) or any multiple of 64. Bytes of a beat count from the lowest bits, as AXI has it;
// `in_keep` has no gaps, and beats before the last are full. What is to be done with a frame comes with each of its beats.
`default_nettype none

module byte_inserter #(
    parameter int DATA_W = 64,
    parameter int MOST = 12,                   // 12: RIMM; 20, 44: PDN with IPv4, IPv6; a multiple of four
    localparam int BYTES = DATA_W / 8,
    localparam int SIZE_W = $clog2(MOST + 1)
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic in_valid,
    output logic in_ready,
    input wire logic [DATA_W-1:0] in_data,
    input wire logic [BYTES-1:0] in_keep,
    input wire logic in_last,
    input wire logic [SIZE_W-1:0] in_size,     // bytes that are put in; 0: none
    input wire logic [8*MOST-1:0] in_bytes,    // the first in the lowest bits
    input wire logic in_end,                   // 1: at the end of the frame; 0: before its EtherType
    input wire logic in_tagged,                // the EtherType is at 16, behind a tag, and not at 12
    input wire logic in_retype,                // the EtherType becomes `in_type`
    input wire logic [15:0] in_type,           // the first byte in the lowest bits
    output logic out_valid,
    output logic [DATA_W-1:0] out_data,
    output logic [BYTES-1:0] out_keep,
    output logic out_last
);
    localparam int ALL = BYTES + 2 * MOST;     // bytes of a beat, of what waits and of what is put in
    localparam int ALL_W = $clog2(ALL + 1);
    localparam int AT_W = $clog2(BYTES + 24);

    // Bytes in the beat that comes in. `in_keep` is a thermometer: the highest bit that is set says how many.
    logic [ALL_W-1:0] counts [0:BYTES];
    assign counts[0] = '0;
    for (genvar i = 0; i < BYTES; i++) begin : sum
        assign counts[i+1] = in_keep[i] ? ALL_W'(i + 1) : counts[i];
    end

    // Bytes of the frame before this beat, up to 24 and a beat: behind the EtherType in any case.
    logic [AT_W-1:0] passed, place;
    logic here, types;
    assign place = in_tagged ? AT_W'(16) : AT_W'(12);
    assign here = passed <= place && place < passed + AT_W'(BYTES);
    assign types = here && in_retype;

    // The beat with its EtherType; then what comes before the insertion, the insertion, and what comes after it.
    logic [8*ALL-1:0] beat, low, inserted, whole;
    logic [ALL_W-1:0] at, count, total;
    logic puts;
    assign at = in_end ? counts[BYTES] : ALL_W'(place - passed);
    assign puts = in_size != '0 && (in_end ? in_last : here);
    always_comb begin
        beat = (8*ALL)'(in_data);
        for (int i = 0; i < BYTES; i++) begin
            if (!in_keep[i]) beat[8*i +: 8] = 8'd0;
            if (types && ALL_W'(i) == ALL_W'(place - passed)) beat[8*i +: 16] = in_type;
        end
        low = ~({8*ALL{1'b1}} << {at, 3'b000});
        inserted = puts
            ? (beat & low) | ((8*ALL)'(in_bytes) << {at, 3'b000}) | ((beat & ~low) << {in_size, 3'b000})
            : beat;
    end

    // Behind what waits. While that leaves, nothing comes in.
    logic [8*MOST-1:0] rest;
    logic [SIZE_W-1:0] waits;
    logic drains, moves;
    assign in_ready = !drains;
    assign moves = drains || in_valid;
    assign count = drains ? '0 : counts[BYTES] + (puts ? ALL_W'(in_size) : '0);
    assign total = ALL_W'(waits) + count;
    assign whole = (8*ALL)'(rest) | (drains ? '0 : inserted << {waits, 3'b000});

    always_ff @(posedge clk) begin
        out_data <= whole[DATA_W-1:0];
        out_last <= (drains || in_last) && total <= ALL_W'(BYTES);
        for (int i = 0; i < BYTES; i++) out_keep[i] <= ALL_W'(i) < total;
        if (rst) begin
            out_valid <= 1'b0;
            drains <= 1'b0;
            waits <= '0;
            rest <= '0;
            passed <= '0;
        end else begin
            out_valid <= moves;
            if (moves) begin
                rest <= whole[DATA_W +: 8*MOST];
                waits <= total > ALL_W'(BYTES) ? SIZE_W'(total - ALL_W'(BYTES)) : '0;
                drains <= (drains || in_last) && total > ALL_W'(BYTES);
                if (drains || in_last) passed <= '0;
                else if (passed < AT_W'(24)) passed <= passed + AT_W'(BYTES);
            end
        end
    end
endmodule
`default_nettype wire
