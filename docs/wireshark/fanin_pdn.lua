-- Wireshark: drop notifications at the end of Ethernet frames (EtherTypes 0xA800, 0xA6DD), and the packets before them as ever.
--   wireshark -X lua_script:fanin_pdn.lua packets.pcapng
-- pdn.src, pdn.dst, pdn.sport, pdn.dport, pdn.seq, pdn.length [B], pdn.type, pdn.operation: of the packet that was dropped.
local pdn = Proto("pdn", "Packet drop notification")
local kinds = { [1] = "Packet of IPv4 dropped", [2] = "Packet of IPv6 dropped" }
local operations = { [1] = "Retransmit and halve", [2] = "Retransmit", [3] = "Acknowledge" }
local src4, dst4 = ProtoField.ipv4("pdn.src", "Source"), ProtoField.ipv4("pdn.dst", "Destination")
local src6, dst6 = ProtoField.ipv6("pdn.src6", "Source"), ProtoField.ipv6("pdn.dst6", "Destination")
local sport, dport = ProtoField.uint16("pdn.sport", "Source port"), ProtoField.uint16("pdn.dport", "Destination port")
local seq = ProtoField.uint32("pdn.seq", "Sequence number; acknowledgment number of an acknowledgment")
local length = ProtoField.uint16("pdn.length", "Payload [B]")
local kind = ProtoField.uint8("pdn.type", "Type", base.DEC, kinds)
local operation = ProtoField.uint8("pdn.operation", "Operation", base.DEC, operations)
pdn.fields = { src4, dst4, src6, dst6, sport, dport, seq, length, kind, operation }

local ADDRESS = { [1] = 4, [2] = 16 } -- bytes, by type

function pdn.dissector(buffer, info, tree)
  local all = buffer:len()
  if buffer:reported_len() > all and all > 0 then -- the capture holds its beginning only: what was at the end is not known
    local version = buffer(0, 1):bitfield(0, 4)
    return Dissector.get(version == 4 and "ip" or version == 6 and "ipv6" or "data"):call(buffer, info, tree)
  end
  local address = all >= 2 and ADDRESS[buffer(all - 2, 1):uint()]
  local size = address and 2 * address + 12
  if not size or all < size then return 0 end
  local rest = all - size
  -- A frame with nothing but a notification is padded with zeroes.
  local version = rest > 0 and buffer(0, 1):bitfield(0, 4)
  local before = Dissector.get(version == 4 and "ip" or version == 6 and "ipv6" or "data")
  if rest > 0 then before:call(buffer(0, rest):tvb(), info, tree) end

  local bytes = buffer(rest, size)
  local branch = tree:add(pdn, bytes)
  local six = address == 16
  branch:add(six and src6 or src4, bytes(0, address))
  branch:add(six and dst6 or dst4, bytes(address, address))
  local fields = { { sport, 2 }, { dport, 2 }, { seq, 4 }, { length, 2 }, { kind, 1 }, { operation, 1 } }
  local at = 2 * address
  for _, field in ipairs(fields) do
    branch:add(field[1], bytes(at, field[2]))
    at = at + field[2]
  end
  info.cols.info:append(" [drop notification]")
  return all
end

local types = DissectorTable.get("ethertype")
types:add(0xa800, pdn)
types:add(0xa6dd, pdn)
