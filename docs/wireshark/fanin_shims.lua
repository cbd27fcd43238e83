-- Wireshark: headers of PABO (0xA8F5) and Vertigo (0xA8F8) before the EtherType, and the packets behind them as ever.
--   wireshark -X lua_script:fanin_shims.lua packets.pcapng
-- pabo.bounces: how often a packet was bounced. vertigo.left [B]: what its flow had left to send. vertigo.again: how often it was sent
-- before. RIMM's headers: fanin_rimm.lua.
local pabo, vertigo = Proto("pabo", "PABO"), Proto("vertigo", "Vertigo")
local bounces = ProtoField.uint8("pabo.bounces", "Bounces")
local left = ProtoField.uint32("vertigo.left", "Bytes that the flow has left to send")
local again = ProtoField.uint8("vertigo.again", "Times sent before")
local inner = { pabo = ProtoField.uint16("pabo.type", "EtherType behind it", base.HEX),
                vertigo = ProtoField.uint16("vertigo.type", "EtherType behind it", base.HEX) }
pabo.fields = { bounces, inner.pabo }
vertigo.fields = { left, again, inner.vertigo }

local types = DissectorTable.get("ethertype")

-- What is behind a header. Where the capture has cut the frame, zeroes stand for the rest, so that lengths are those on the wire.
local function behind(buffer, at)
  local missing = buffer:reported_len() - buffer:len()
  if missing == 0 then return buffer(at):tvb() end
  local bytes = buffer(at):bytes()
  bytes:append(ByteArray.new(string.rep("00", missing)))
  return bytes:tvb("Zeroes behind what was captured")
end

-- A header of `body` bytes behind its EtherType, of which `fields` are { field, offset, length }.
local function header(proto, body, fields, note)
  return function(buffer, info, tree)
    if buffer:len() < body + 2 then return 0 end
    local branch = tree:add(proto, buffer(0, body + 2))
    for _, field in ipairs(fields) do branch:add(field[1], buffer(field[2], field[3])) end
    branch:add(inner[string.lower(proto.name)], buffer(body, 2))
    local rest = behind(buffer, body + 2)
    if not types:try(buffer(body, 2):uint(), rest, info, tree) then
      Dissector.get("data"):call(rest, info, tree)
    end
    local said = note(buffer)
    if said then info.cols.info:append(said) end
    return buffer:len()
  end
end

pabo.dissector = header(pabo, 2, { { bounces, 0, 1 } }, function() return " [bounced]" end)
vertigo.dissector = header(vertigo, 6, { { left, 0, 4 }, { again, 4, 1 } }, function(buffer)
  if buffer(4, 1):uint() > 0 then return " [boosted]" end
end)
types:add(0xa8f5, pabo)
types:add(0xa8f8, vertigo)
