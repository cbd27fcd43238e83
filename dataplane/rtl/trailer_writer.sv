// Writes the last eight bytes of frames that pass as a stream (AXI4-Stream without back-pressure), a beat in each clock.
//
// The trailer may lie across two beats, so that each beat waits until the next one is there: latency of one beat within a frame,
// none is added between frames. DATA_W is 64 (125 MHz), 512 (322 MHz) or any multiple of 64. Frames have eight bytes at least; bytes of
// a beat count from the lowest bits, as AXI has it, and `in_keep` has no gaps.
`default_nettype none

module trailer_writer #(
    parameter int DATA_W = 64,
    localparam int BYTES = DATA_W / 8
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic in_valid,
    input wire logic [DATA_W-1:0] in_data,
    input wire logic [BYTES-1:0] in_keep,
    input wire logic in_last,
    input wire logic in_write,                 // with the last beat: the frame gets the trailer
    input wire logic [63:0] in_trailer,        // with the last beat; the first byte in the upper bits
    output logic out_valid,
    output logic [DATA_W-1:0] out_data,
    output logic [BYTES-1:0] out_keep,
    output logic out_last
);
    localparam int COUNT_W = $clog2(BYTES) + 1;

    // Bytes of the trailer in the order in which they are sent, the first in the lowest bits.
    logic [63:0] swapped;
    for (genvar i = 0; i < 8; i++) begin : swap
        assign swapped[8*i +: 8] = in_trailer[8*(7-i) +: 8];
    end

    // Bytes in the beat that comes in. `in_keep` is a thermometer: the highest bit that is set says how many.
    logic [COUNT_W-1:0] counts [0:BYTES];
    assign counts[0] = '0;
    for (genvar i = 0; i < BYTES; i++) begin : sum
        assign counts[i+1] = in_keep[i] ? COUNT_W'(i + 1) : counts[i];
    end
    logic [COUNT_W-1:0] count;
    assign count = counts[BYTES];

    // The trailer over the held beat (lower half) and the one that comes in (upper half): it starts at BYTES + count - 8.
    logic [2*DATA_W-1:0] bytes, mask;
    logic [COUNT_W:0] at;
    assign at = (COUNT_W + 1)'(BYTES) + (COUNT_W + 1)'(count) - (COUNT_W + 1)'(8);
    assign bytes = (2*DATA_W)'(swapped) << {at, 3'b000};
    assign mask = (2*DATA_W)'({64{1'b1}}) << {at, 3'b000};

    logic held, held_last;
    logic [DATA_W-1:0] held_data;
    logic [BYTES-1:0] held_keep;
    logic writes, across;
    assign writes = in_valid && in_last && in_write;
    assign across = writes && held && !held_last;

    always_ff @(posedge clk) begin
        if (rst) begin
            held <= 1'b0;
            held_last <= 1'b0;
            out_valid <= 1'b0;
        end else begin
            // A beat that is the last leaves by itself; any other when the next one of its frame is there.
            out_valid <= held && (held_last || in_valid);
            if (in_valid) begin
                held <= 1'b1;
                held_last <= in_last;
            end else if (held_last) held <= 1'b0;
        end
        out_data <= across ? (held_data & ~mask[DATA_W-1:0]) | bytes[DATA_W-1:0] : held_data;
        out_keep <= held_keep;
        out_last <= held_last;
        if (in_valid) begin
            held_data <= writes ? (in_data & ~mask[2*DATA_W-1:DATA_W]) | bytes[2*DATA_W-1:DATA_W] : in_data;
            held_keep <= in_keep;
        end
    end
endmodule
`default_nettype wire
