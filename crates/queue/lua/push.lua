-- Puts ids into the queue, unless it has them already.
--
-- KEYS[1] ready      zset  id by place in line
-- KEYS[2] scheduled  zset  id by due time, ms
-- KEYS[3] leased     zset  id by grant
-- KEYS[4] epoch      string
-- KEYS[5] sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] epoch to take if there is none
-- ARGV[3..] pairs: id, wait in ms; at most 500 pairs, for `unpack` has a limit and others wait meanwhile
-- Returns the ids among them that are leased.
--
-- Why one script: whether an id is here is asked of three sets, and must still be so when it is added.

-- First, because a full server refuses a script at its first write that needs memory, and only there.
redis.call('SET', KEYS[4], ARGV[2], 'NX')

local ids, waits = {}, {}
for i = 3, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
  waits[#waits + 1] = tonumber(ARGV[i + 1])
end

local known, leased = {}, {}
for key = 1, 3 do
  if redis.call('EXISTS', KEYS[key]) == 1 then
    for i, score in ipairs(redis.call('ZMSCORE', KEYS[key], unpack(ids))) do
      if score then
        known[ids[i]] = true
        if key == 3 then leased[#leased + 1] = ids[i] end
      end
    end
  end
end

-- A sequence that starts anew starts at the time in microseconds, so that after a loss of memory no grant is given twice.
local time = redis.call('TIME')
local last = redis.call('INCRBY', KEYS[5], #ids)
if last == #ids then
  last = time[1] * 1000000 + time[2] + #ids
  redis.call('SET', KEYS[5], last)
end

local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ready, scheduled = {}, {}
for i, id in ipairs(ids) do
  if not known[id] then
    known[id] = true
    if waits[i] == 0 then
      ready[#ready + 1] = last - #ids + i
      ready[#ready + 1] = id
    else
      scheduled[#scheduled + 1] = now + waits[i]
      scheduled[#scheduled + 1] = id
    end
  end
end

if #scheduled > 0 then
  redis.call('ZADD', KEYS[2], unpack(scheduled))
end
if #ready > 0 then
  redis.call('ZADD', KEYS[1], unpack(ready))
  redis.call('PUBLISH', ARGV[1], '')
end
return leased
