-- Puts ids into the queue, unless it has them already.
--
-- KEYS[1..4] lanes      zset  id by place in line
-- KEYS[5]    scheduled  zset  id by due time in ms, times 4, plus its lane from 0
-- KEYS[6]    leased     zset  id by grant
-- KEYS[7]    epoch      string
-- KEYS[8]    sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] epoch to take if there is none
-- ARGV[3..] triples: id, wait in ms, lane from 1; at most 500 triples, for `unpack` has a limit and others wait meanwhile
-- Returns the ids among them that are leased.
--
-- Why one script: whether an id is here is asked of six sets, and must still be so when it is added.

-- First, because a full server refuses a script at its first write that needs memory, and only there.
redis.call('SET', KEYS[7], ARGV[2], 'NX')

local ids = {}
for i = 3, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
end

local known, leased = {}, {}
for key = 1, 6 do
  if redis.call('EXISTS', KEYS[key]) == 1 then
    for i, score in ipairs(redis.call('ZMSCORE', KEYS[key], unpack(ids))) do
      if score then
        known[ids[i]] = true
        if key == 6 then leased[#leased + 1] = ids[i] end
      end
    end
  end
end

local place = places(KEYS[8], #ids) - #ids
local ready, scheduled = { {}, {}, {}, {} }, {}
for i, id in ipairs(ids) do
  if not known[id] then
    known[id] = true
    local wait, lane = tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
    if wait == 0 then
      local line = ready[lane]
      line[#line + 1] = place + i
      line[#line + 1] = id
    else
      scheduled[#scheduled + 1] = (now + wait) * 4 + lane - 1
      scheduled[#scheduled + 1] = id
    end
  end
end

if #scheduled > 0 then
  redis.call('ZADD', KEYS[5], unpack(scheduled))
end
local awake = false
for lane = 1, 4 do
  if #ready[lane] > 0 then
    redis.call('ZADD', KEYS[lane], unpack(ready[lane]))
    awake = true
  end
end
if awake then
  redis.call('PUBLISH', ARGV[1], '')
end
return leased
