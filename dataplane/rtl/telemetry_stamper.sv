// Telemetry stamps: queue length in 16 bits and time in 32 bits, as a port writes them into packets. A packet in each clock.
//
// Source: S-ECN (ICNP 2018) section II-C; the form is docs/telemetry.md: 0xFA, port, length in units of 2^UNIT_BITS bytes, time in
// ticks of TICK clocks. Both round down; the length stays at 65535, the time starts again from zero.
//
// Fanin's stamp is a trailer behind the IP datagram, which no checksum covers (in_covered = 0). Where the stamp lies in the payload, as
// in the paper, the transport's checksum is updated by RFC 1624 (in_covered = 1): the old eight bytes and the checksum go in, the new ones
// come out, two clocks later. A checksum of zero in UDP over IPv4 means that there is none (in_udp = 1): it stays, and one that
// becomes zero is sent as 0xFFFF.
`default_nettype none

module telemetry_stamper #(
    parameter int QUEUE_W   = 32,  // queue [B]
    parameter int UNIT_BITS = 3,   // 8 B
    parameter int TICK      = 100  // 800 ns at 125 MHz
) (
    input wire logic clk,
    input wire logic rst,

    input wire logic in_valid,
    input wire logic [7:0] in_port,            // as the stamp names it
    input wire logic [QUEUE_W-1:0] in_queue,   // as the packet finds it
    input wire logic in_covered,
    input wire logic in_udp,
    input wire logic [63:0] in_old,            // bytes that the stamp replaces, the first in the upper bits
    input wire logic [15:0] in_checksum,

    output logic out_valid,
    output logic [63:0] out_stamp,
    output logic [15:0] out_checksum
);
    localparam logic [7:0] MAGIC = 8'hfa;
    localparam int TICK_W = $clog2(TICK + 1);

    logic [31:0] ticks;
    logic [TICK_W-1:0] clocks;
    logic [QUEUE_W-1:0] units;
    logic [15:0] length;
    assign units = in_queue >> UNIT_BITS;
    assign length = units > QUEUE_W'(65535) ? 16'hffff : units[15:0];

    logic v1, covered1, none1, udp1;
    logic [63:0] stamp1, old1;
    logic [15:0] checksum1, updated;

    checksum_update #(.WORDS(4)) update (.checksum(checksum1), .old_words(old1), .new_words(stamp1), .updated(updated));

    always_ff @(posedge clk) begin
        if (rst) begin
            ticks <= '0;
            clocks <= '0;
            v1 <= 1'b0;
            out_valid <= 1'b0;
        end else begin
            if (clocks == TICK_W'(TICK - 1)) begin
                clocks <= '0;
                ticks <= ticks + 1'b1;
            end else clocks <= clocks + 1'b1;
            v1 <= in_valid;
            out_valid <= v1;
        end
        stamp1 <= {MAGIC, in_port, length, ticks};
        old1 <= in_old;
        checksum1 <= in_checksum;
        covered1 <= in_covered;
        udp1 <= in_udp;
        none1 <= in_udp && in_checksum == 16'd0;
        out_stamp <= stamp1;
        out_checksum <= !covered1 || none1 ? checksum1 : udp1 && updated == 16'd0 ? 16'hffff : updated;
    end
endmodule
`default_nettype wire
