-- Puts the ids of grants that ran out back at the head of the line.
--
-- KEYS[1] leased    zset  id by grant
-- KEYS[2] grants    zset  grant by deadline, ms
-- KEYS[3] ready     zset  id by place in line: the first lane, for these ids have had their turn
-- KEYS[4] sequence  integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] after how many ids it stops
-- Returns how many ids were moved, and 1 if there may be more.
--
-- A grant has at most 500 ids, so one call moves less than ARGV[2] + 500, well below the limit of `unpack`.

local over = redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)
local more = #over == 100 and 1 or 0

-- A server that evicts keys may have lost the grants alone; the ids that they held would be leased for ever.
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if #oldest > 0 and not redis.call('ZSCORE', KEYS[2], oldest[2]) then
  table.insert(over, 1, oldest[2])
  more = 1
end

local ids = {}
for _, grant in ipairs(over) do
  if #ids >= tonumber(ARGV[2]) then
    more = 1
    break
  end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[1], grant, grant, 'BYSCORE')) do
    ids[#ids + 1] = id
  end
  redis.call('ZREM', KEYS[2], grant)
end
if #ids == 0 then
  return { 0, more }
end

redis.call('ZREM', KEYS[1], unpack(ids))
local last = places(KEYS[4], #ids)
local line = {}
for i, id in ipairs(ids) do
  line[2 * i - 1] = i - 1 - last
  line[2 * i] = id
end
redis.call('ZADD', KEYS[3], unpack(line))
redis.call('PUBLISH', ARGV[1], '')
return { #ids, more }
