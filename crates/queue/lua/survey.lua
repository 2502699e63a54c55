-- Counts what the queue holds, and says how long it has waited.
--
-- KEYS[1..4] lanes      zset  id by place in line
-- KEYS[5]    scheduled  zset  id by due time in ms, times 4, plus its lane from 0
-- KEYS[6]    leased     zset  id by grant
-- KEYS[7]    fetched    hash  `at`: when somebody last took something, ms
-- KEYS[8]    paused     string, there while the queue is paused
-- KEYS[9]    grants     zset  grant by deadline, ms
-- Returns the counts of the six sets, the age in ms of the oldest that is due and of the last fetch (-1: none), 1 while
-- the queue is paused, and 1 while a lease runs.

local counts = {}
for key = 1, 6 do
  counts[key] = redis.call('ZCARD', KEYS[key])
end

local oldest = -1
for lane = 1, 4 do
  local first = redis.call('ZRANGE', KEYS[lane], 0, 0, 'WITHSCORES')
  if #first > 0 then
    -- Below zero for what was put back, and then its distance from zero is the time.
    oldest = math.max(oldest, 0, now - math.floor(math.abs(first[2]) / 1000))
  end
end
local next_due = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
if #next_due > 0 then
  oldest = math.max(oldest, now - math.floor(next_due[2] / 4))
end

local at = redis.call('HGET', KEYS[7], 'at')
local fetched = at and math.max(0, now - at) or -1
local held = redis.call('ZCOUNT', KEYS[9], now, '+inf') > 0
return { counts, oldest, fetched, redis.call('EXISTS', KEYS[8]), held and 1 or 0 }
