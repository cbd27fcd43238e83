-- Wireshark: in-band telemetry before the EtherType (0xA8F6, on its way back 0xA8F7), and the packets behind it as ever.
--   wireshark -X lua_script:fanin_int.lua packets.pcapng
-- int.hops, int.path, int.echo; of each record int.rate [Gb/s], int.time [ns], int.sent [B], int.queue [B].
local int = Proto("int", "In-band telemetry")
local RATE = { [0] = "unknown", "0.1", "1", "2.5", "5", "10", "20", "25", "40", "50", "100", "200", "400", "800", "1600", "3200" }
local hops = ProtoField.uint8("int.hops", "Records")
local path = ProtoField.uint16("int.path", "Path", base.HEX)
local echo = ProtoField.bool("int.echo", "On its way back")
local rate = ProtoField.string("int.rate", "Rate of the link [Gb/s]")
local time = ProtoField.uint32("int.time", "Time [ns], modulo 2^24")
local sent = ProtoField.uint32("int.sent", "Bytes sent before, modulo 2^27")
local queue = ProtoField.uint32("int.queue", "Bytes left behind in the queue")
local inner = ProtoField.uint16("int.type", "EtherType behind it", base.HEX)
int.fields = { hops, path, echo, rate, time, sent, queue, inner }

local types = DissectorTable.get("ethertype")

-- The EtherType itself is the two bytes before the buffer.
local function dissect(back)
  return function(buffer, info, tree)
    if buffer:len() < 2 then return 0 end
    local count = buffer(0, 1):bitfield(0, 4)
    local body = 2 + 8 * count
    if buffer:len() < body + 2 then return 0 end
    local branch = tree:add(int, buffer(0, body + 2))
    branch:add(hops, buffer(0, 1), count)
    branch:add(path, buffer(0, 2), buffer(0, 2):bitfield(4, 12))
    branch:add(echo, back):set_generated()
    for i = 0, count - 1 do
      local record = buffer(2 + 8 * i, 8)
      local one = branch:add(int, record, "Record " .. i + 1)
      one:add(rate, record(0, 1), RATE[record:bitfield(0, 4)])
      one:add(time, record(0, 4), record:bitfield(4, 24))
      one:add(sent, record(3, 3), record:bitfield(28, 20) * 128)
      one:add(queue, record(6, 2), record:bitfield(48, 16) * 80)
    end
    branch:add(inner, buffer(body, 2))
    local rest = buffer(body + 2):tvb()
    if not types:try(buffer(body, 2):uint(), rest, info, tree) then
      Dissector.get("data"):call(rest, info, tree)
    end
    info.cols.info:append(back and " [telemetry back]" or " [telemetry]")
    return buffer:len()
  end
end

-- One protocol for each EtherType, since a dissector is not given its value; both show the fields of the first.
for value, back in pairs({ [0xa8f6] = false, [0xa8f7] = true }) do
  local one = Proto(back and "int_back" or "int_there", back and "In-band telemetry, on its way back" or "In-band telemetry, on its way")
  one.dissector = dissect(back)
  types:add(value, one)
end
