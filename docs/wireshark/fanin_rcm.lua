-- Wireshark: notifications of congestion between switches with RCM (EtherType 0xA8F9).
--   wireshark -X lua_script:fanin_rcm.lua packets.pcapng
-- rcm.degree: F_b' of 63; zero: it is over. rcm.port: input port that it is about. rcm.flow: a harmful flow, with rcm.src, rcm.dst,
-- rcm.srcport, rcm.dstport.
local rcm = Proto("rcm", "RCM")
local kind = ProtoField.uint8("rcm.kind", "What", base.DEC, { [1] = "Notification", [2] = "Notification, more flows follow" })
local degree = ProtoField.uint8("rcm.degree", "Congestion degree")
local port = ProtoField.uint16("rcm.port", "Input port")
local src4, dst4 = ProtoField.ipv4("rcm.src", "Source"), ProtoField.ipv4("rcm.dst", "Destination")
local src6, dst6 = ProtoField.ipv6("rcm.src6", "Source"), ProtoField.ipv6("rcm.dst6", "Destination")
local srcport = ProtoField.uint16("rcm.srcport", "Source port")
local dstport = ProtoField.uint16("rcm.dstport", "Destination port")
rcm.fields = { kind, degree, port, src4, dst4, src6, dst6, srcport, dstport }

-- A frame is padded to the least size, so its flows end where an address of zeroes begins. Those of IPv6 begin with fd.
function rcm.dissector(buffer, info, tree)
  if buffer:len() < 4 then return 0 end
  info.cols.protocol = "RCM"
  local branch = tree:add(rcm, buffer())
  branch:add(kind, buffer(0, 1))
  branch:add(degree, buffer(1, 1))
  branch:add(port, buffer(2, 2))
  local at, flows = 4, 0
  local six = buffer:len() >= 8 and buffer(4, 1):uint() == 0xfd
  local address = six and 16 or 4
  while at + 2 * address + 4 <= buffer:len() and buffer(at, 4):uint() ~= 0 do
    branch:add(six and src6 or src4, buffer(at, address))
    branch:add(six and dst6 or dst4, buffer(at + address, address))
    branch:add(srcport, buffer(at + 2 * address, 2))
    branch:add(dstport, buffer(at + 2 * address + 2, 2))
    at, flows = at + 2 * address + 4, flows + 1
  end
  info.cols.info = string.format("Congestion degree %d, %d flows", buffer(1, 1):uint(), flows)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(0xa8f9, rcm)
