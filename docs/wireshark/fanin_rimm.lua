-- Wireshark: headers that switches with RIMM put before the EtherType (0xA8F0 to 0xA8F4), and the packets behind them as ever.
--   wireshark -X lua_script:fanin_rimm.lua packets.pcapng
-- rimm.depth [cells]: queue that the sender left behind. rimm.number: of a detoured packet. rimm.port, rimm.crossing,
-- rimm.queue: of a message. rimm.returning: on its way back.
local rimm = Proto("rimm", "RIMM")
local kinds = {
  [0xa8f0] = "Depth", [0xa8f1] = "Detour", [0xa8f2] = "Detour, on its way back",
  [0xa8f3] = "Message", [0xa8f4] = "Message, on its way back",
}
local kind = ProtoField.uint16("rimm.kind", "Header", base.HEX, kinds)
local depth = ProtoField.uint16("rimm.depth", "Depth of the sender's queue [cells]")
local number = ProtoField.uint32("rimm.number", "Sequence number")
local port = ProtoField.uint16("rimm.port", "Port that the message is about")
local crossing = ProtoField.uint16("rimm.crossing", "Number of the crossing")
local queue = ProtoField.uint32("rimm.queue", "Depth of its queue [unit of alpha]")
local returning = ProtoField.bool("rimm.returning", "On its way back")
local inner = ProtoField.uint16("rimm.type", "EtherType behind it", base.HEX)
rimm.fields = { kind, depth, number, port, crossing, queue, returning, inner }

local BODY = { [0xa8f0] = 2, [0xa8f1] = 6, [0xa8f2] = 6, [0xa8f3] = 10, [0xa8f4] = 10 } -- bytes behind the EtherType
local types = DissectorTable.get("ethertype")

-- What is behind a header. Where the capture has cut the frame, zeroes stand for the rest, so that lengths are those on the wire.
local function behind(buffer, at)
  local missing = buffer:reported_len() - buffer:len()
  if missing == 0 then return buffer(at):tvb() end
  local bytes = buffer(at):bytes()
  bytes:append(ByteArray.new(string.rep("00", missing)))
  return bytes:tvb("Zeroes behind what was captured")
end

-- The EtherType itself is the two bytes before the buffer.
local function dissect(value)
  return function(buffer, info, tree)
    local body = BODY[value]
    if buffer:len() < body + 2 then return 0 end
    local branch = tree:add(rimm, buffer(0, body + 2))
    branch:add(kind, value):set_generated()
    branch:add(depth, buffer(0, 2))
    if body == 6 then branch:add(number, buffer(2, 4)) end
    if body == 10 then
      branch:add(port, buffer(2, 2))
      branch:add(crossing, buffer(4, 2))
      branch:add(queue, buffer(6, 4))
    end
    branch:add(returning, value == 0xa8f2 or value == 0xa8f4):set_generated()
    branch:add(inner, buffer(body, 2))
    local rest = behind(buffer, body + 2)
    if not types:try(buffer(body, 2):uint(), rest, info, tree) then
      Dissector.get("data"):call(rest, info, tree)
    end
    if body == 6 then info.cols.info:append(" [detour]") end
    if body == 10 then info.cols.info:append(" [queue message]") end
    return buffer:len()
  end
end

-- One protocol for each EtherType, since a dissector is not given its value; all of them show the fields of the first.
for value, name in pairs({ [0xa8f0] = "depth", [0xa8f1] = "detour", [0xa8f2] = "return", [0xa8f3] = "message", [0xa8f4] = "answer" }) do
  local one = Proto("rimm_" .. name, "RIMM " .. name)
  one.dissector = dissect(value)
  types:add(value, one)
end
