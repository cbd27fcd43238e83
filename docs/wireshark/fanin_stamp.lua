-- Wireshark: stamps of watched ports at the end of Ethernet frames, as fields to filter, sort and plot by.
--   wireshark -X lua_script:fanin_stamp.lua packets.pcapng
-- fanin.port, fanin.queue [B], fanin.time [s]; what the registers count in is a preference (manifest.json, "registers").
local stamp = Proto("fanin", "Fanin stamp")
stamp.prefs.tick = Pref.uint("Tick of the time register [ps]", 800000, "tick_ps")
stamp.prefs.unit = Pref.uint("Unit of the length register [B]", 8, "unit_bytes")
local port = ProtoField.uint8("fanin.port", "Watched port (index in manifest.json)")
local queue = ProtoField.uint32("fanin.queue", "Queue that the packet found [B]")
local time = ProtoField.double("fanin.time", "Time of the port, modulo 2^32 ticks [s]")
stamp.fields = { port, queue, time }

local trailer = Field.new("eth.trailer")
local BYTES, MAGIC, NO_PORT = 8, 0xfa, 255

function stamp.dissector(buffer, _, tree)
  local found = trailer()
  if not found or found.len < BYTES then return end
  -- Where the frame check sequence was not captured, the trailer ends with the frame.
  local bytes = buffer(found.offset + found.len - BYTES, BYTES)
  if bytes(0, 1):uint() ~= MAGIC or bytes(1, 1):uint() == NO_PORT then return end
  local length, ticks = bytes(2, 2):uint(), bytes(4, 4):uint()
  local branch = tree:add(stamp, bytes)
  branch:add(port, bytes(1, 1))
  branch:add(queue, bytes(2, 2), length * stamp.prefs.unit)
  branch:add(time, bytes(4, 4), ticks * stamp.prefs.tick * 1e-12)
end

register_postdissector(stamp)
