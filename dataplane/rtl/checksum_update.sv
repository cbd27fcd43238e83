// Updates an Internet checksum for words that change: HC' = ~(~HC + sum of ~m + sum of m').
//
// Source: RFC 1624 equation 3. That of RFC 1141 gives 0xFFFF where a checksum of 0x0000 is right.
// Combinational; OLD and NEW are the same 16-bit words of a packet, before and after.
`default_nettype none

module checksum_update #(
    parameter int WORDS = 4
) (
    input wire logic [15:0] checksum,
    input wire logic [16*WORDS-1:0] old_words,
    input wire logic [16*WORDS-1:0] new_words,
    output logic [15:0] updated
);
    localparam int SUM_W = 16 + $clog2(2 * WORDS + 1);
    logic [SUM_W-1:0] partial [0:WORDS];
    logic [SUM_W-1:0] sum;
    logic [16:0] folded;

    logic [15:0] complement;
    assign complement = ~checksum;
    assign partial[0] = SUM_W'(complement);
    for (genvar i = 0; i < WORDS; i++) begin : word
        logic [15:0] was, becomes;
        assign was = ~old_words[16*i +: 16];
        assign becomes = new_words[16*i +: 16];
        assign partial[i+1] = partial[i] + SUM_W'(was) + SUM_W'(becomes);
    end
    assign sum = partial[WORDS];
    assign folded = 17'(sum[15:0]) + 17'(sum[SUM_W-1:16]);
    assign updated = ~(folded[15:0] + 16'(folded[16]));
endmodule
`default_nettype wire
