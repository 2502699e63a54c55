-- Moves ids that are due to the ends of their lines, in the order in which they are due.
--
-- KEYS[1..4] lanes      zset  id by place in line
-- KEYS[5]    scheduled  zset  id by due time in ms, times 4, plus its lane from 0
-- KEYS[6]    sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] how many at most; at most 500
-- Returns how many were moved, and in how many ms the next is due (-1: none is scheduled).
--
-- Why a limit: `unpack` fails from 8,000 on, and every other client waits while a script runs.

local due = redis.call('ZRANGE', KEYS[5], '-inf', now * 4 + 3, 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local count = #due / 2

if count > 0 then
  local ids = {}
  for i = 1, count do
    ids[i] = due[2 * i - 1]
  end
  redis.call('ZREM', KEYS[5], unpack(ids))
  local place = places(KEYS[6], count) - count
  local ready = { {}, {}, {}, {} }
  for i, id in ipairs(ids) do
    local line = ready[due[2 * i] % 4 + 1]
    line[#line + 1] = place + i
    line[#line + 1] = id
  end
  for lane = 1, 4 do
    if #ready[lane] > 0 then
      redis.call('ZADD', KEYS[lane], unpack(ready[lane]))
    end
  end
  redis.call('PUBLISH', ARGV[1], '')
end

local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
if #first == 0 then
  return { count, -1 }
end
return { count, math.max(0, math.floor(first[2] / 4) - now) }
