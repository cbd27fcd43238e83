// Sets CE in the headers of packets that a marker decides on, and updates IPv4's header checksum. A packet in each clock.
//
// Of IPv4 the first word (version, IHL, DSCP, ECN) changes, and the checksum by RFC 1624; of IPv6 the ECN bits lie in the
// first word as well (version, traffic class, upper bits of the flow label), and there is no checksum. Packets that are not ECT stay as they are.
`default_nettype none

module ce_marker (
    input wire logic clk,
    input wire logic rst,
    input wire logic in_valid,
    input wire logic in_mark,
    input wire logic in_ipv6,
    input wire logic [15:0] in_word,           // the first two bytes of the IP header
    input wire logic [15:0] in_checksum,       // of IPv4
    output logic out_valid,
    output logic [15:0] out_word,
    output logic [15:0] out_checksum
);
    logic [1:0] ecn;
    logic [15:0] word, updated;
    logic marks;
    assign ecn = in_ipv6 ? in_word[5:4] : in_word[1:0];
    assign marks = in_mark && ecn != 2'b00;
    assign word = !marks ? in_word : in_ipv6 ? in_word | 16'h0030 : in_word | 16'h0003;

    checksum_update #(.WORDS(1)) update (.checksum(in_checksum), .old_words(in_word), .new_words(word), .updated(updated));

    always_ff @(posedge clk) begin
        out_valid <= !rst && in_valid;
        out_word <= word;
        // An update that changes nothing would still turn 0xFFFF into 0x0000.
        out_checksum <= in_ipv6 || word == in_word ? in_checksum : updated;
    end
endmodule
`default_nettype wire
