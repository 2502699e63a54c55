-- Extends grants that are still there.
--
-- KEYS[1] grants  zset  grant by deadline, ms
-- ARGV[1] how long the lease is from this moment, ms
-- ARGV[2..] grants; at most 500
-- Returns the grants that are gone: their ids have been given to others, or will be.

local asked = {}
for i = 2, #ARGV do
  asked[i - 1] = ARGV[i]
end

local deadline = now + ARGV[1]
local kept, gone = {}, {}
for i, score in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(asked))) do
  if score then
    kept[#kept + 1] = deadline
    kept[#kept + 1] = asked[i]
  else
    gone[#gone + 1] = asked[i]
  end
end
if #kept > 0 then
  redis.call('ZADD', KEYS[1], unpack(kept))
end
return gone
