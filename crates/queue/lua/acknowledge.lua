-- Ends leases: forgets the id, schedules it, or puts it back at the head of the line.
--
-- KEYS[1] ready      zset  id by place in line
-- KEYS[2] scheduled  zset  id by due time, ms
-- KEYS[3] leased     zset  id by grant
-- KEYS[4] grants     zset  grant by deadline, ms
-- KEYS[5] sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2..] triples: id, grant, and `done`, `back` or a wait in ms; at most 500 triples
-- Returns how many were refused because another grant has the id.
--
-- Why it asks for the grant: an acknowledgement may arrive late, after the lease ran out and another took the job.
-- Why an id that nobody has is scheduled all the same: the server may have lost its memory since, and the job is unfinished.

local ids = {}
for i = 2, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
end
local holders = redis.call('ZMSCORE', KEYS[3], unpack(ids))

local ended, grants, unfinished, refused = {}, {}, {}, 0
for i, id in ipairs(ids) do
  local grant, verdict = ARGV[3 * i], ARGV[3 * i + 1]
  local ours = holders[i] == grant
  if ours then
    ended[#ended + 1] = id
    grants[grant] = true
  elseif holders[i] then
    refused = refused + 1
  end
  if verdict ~= 'done' then
    local nowhere = not holders[i]
      and not redis.call('ZSCORE', KEYS[1], id)
      and not redis.call('ZSCORE', KEYS[2], id)
    if ours or nowhere then
      unfinished[#unfinished + 1] = { id, verdict }
    end
  end
end

if #ended > 0 then
  redis.call('ZREM', KEYS[3], unpack(ended))
end
for grant in pairs(grants) do
  if redis.call('ZCOUNT', KEYS[3], grant, grant) == 0 then
    redis.call('ZREM', KEYS[4], grant)
  end
end
if #unfinished == 0 then
  return refused
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('INCRBY', KEYS[5], #unfinished)
if last == #unfinished then
  last = time[1] * 1000000 + time[2] + #unfinished
  redis.call('SET', KEYS[5], last)
end
local awake = false
for i, job in ipairs(unfinished) do
  local id, verdict = job[1], job[2]
  if verdict == 'back' then
    redis.call('ZADD', KEYS[1], i - last, id)
    awake = true
  elseif verdict == '0' then
    redis.call('ZADD', KEYS[1], last - #unfinished + i, id)
    awake = true
  else
    redis.call('ZADD', KEYS[2], now + verdict, id)
  end
end
if awake then
  redis.call('PUBLISH', ARGV[1], '')
end
return refused
