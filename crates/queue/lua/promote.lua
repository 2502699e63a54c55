-- Moves ids that are due to the end of the line, in the order in which they are due.
--
-- KEYS[1] scheduled  zset  id by due time, ms
-- KEYS[2] ready      zset  id by place in line
-- KEYS[3] sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] how many at most; at most 500
-- Returns how many were moved, and in how many ms the next is due (-1: none is scheduled).
--
-- Why a limit: `unpack` fails from 8,000 on, and every other client waits while a script runs.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])

if #due > 0 then
  redis.call('ZREM', KEYS[1], unpack(due))
  local last = redis.call('INCRBY', KEYS[3], #due)
  if last == #due then
    last = time[1] * 1000000 + time[2] + #due
    redis.call('SET', KEYS[3], last)
  end
  local places = {}
  for i, id in ipairs(due) do
    places[2 * i - 1] = last - #due + i
    places[2 * i] = id
  end
  redis.call('ZADD', KEYS[2], unpack(places))
  redis.call('PUBLISH', ARGV[1], '')
end

local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if #first == 0 then
  return { #due, -1 }
end
return { #due, math.max(0, first[2] - now) }
