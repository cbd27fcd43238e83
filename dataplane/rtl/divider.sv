// Divides whole numbers, a bit in each clock: N / D, rounded down.
`default_nettype none

module divider #(
    parameter int WIDTH = 64,                 // dividend and quotient
    parameter int DIVISOR_W = 33
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic start,                   // takes the operands; what was under way is forgotten
    input wire logic [WIDTH-1:0] dividend,
    input wire logic [DIVISOR_W-1:0] divisor, // not zero
    output logic done,                        // for one clock, WIDTH clocks after start
    output logic [WIDTH-1:0] quotient,
    output logic [DIVISOR_W-1:0] remainder
);
    localparam int COUNT_W = $clog2(WIDTH + 1);
    logic [COUNT_W-1:0] left;
    logic [DIVISOR_W-1:0] by;
    logic [DIVISOR_W:0] shifted, less;

    assign shifted = {remainder, quotient[WIDTH-1]};
    assign less = shifted - {1'b0, by};

    always_ff @(posedge clk) begin
        done <= 1'b0;
        if (rst) begin
            left <= '0;
        end else if (start) begin
            left <= COUNT_W'(WIDTH);
            by <= divisor;
            quotient <= dividend;
            remainder <= '0;
        end else if (left != 0) begin
            left <= left - 1'b1;
            done <= left == 1;
            quotient <= {quotient[WIDTH-2:0], !less[DIVISOR_W]};
            remainder <= less[DIVISOR_W] ? shifted[DIVISOR_W-1:0] : less[DIVISOR_W-1:0];
        end
    end
endmodule
`default_nettype wire
