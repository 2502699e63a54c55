-- Ends leases: forgets the id, schedules it among the retries, or puts it back at the head of the line.
--
-- KEYS[1..4] lanes      zset  id by place in line
-- KEYS[5]    scheduled  zset  id by due time in ms, times 4, plus its lane from 0
-- KEYS[6]    leased     zset  id by grant
-- KEYS[7]    grants     zset  grant by deadline, ms
-- KEYS[8]    sequence   integer
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] lane of the retries, from 1
-- ARGV[3..] triples: id, grant, and `done`, `back` or a wait in ms; at most 500 triples
-- Returns how many were refused because another grant has the id.
--
-- Why it asks for the grant: an acknowledgement may arrive late, after the lease ran out and another took the job.
-- Why an id that nobody has is scheduled all the same: the server may have lost its memory since, and the job is unfinished.
-- Why `back` goes before all lanes, whichever it came from: it has had its turn.

local ids = {}
for i = 3, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
end
local holders = redis.call('ZMSCORE', KEYS[6], unpack(ids))

local function is_here(id)
  for key = 1, 5 do
    if redis.call('ZSCORE', KEYS[key], id) then return true end
  end
  return false
end

local ended, grants, unfinished, refused = {}, {}, {}, 0
for i, id in ipairs(ids) do
  local grant, verdict = ARGV[3 * i + 1], ARGV[3 * i + 2]
  local ours = holders[i] == grant
  if ours then
    ended[#ended + 1] = id
    grants[grant] = true
  elseif holders[i] then
    refused = refused + 1
  end
  if verdict ~= 'done' and (ours or not (holders[i] or is_here(id))) then
    unfinished[#unfinished + 1] = { id, verdict }
  end
end

if #ended > 0 then
  redis.call('ZREM', KEYS[6], unpack(ended))
end
for grant in pairs(grants) do
  if redis.call('ZCOUNT', KEYS[6], grant, grant) == 0 then
    redis.call('ZREM', KEYS[7], grant)
  end
end
if #unfinished == 0 then
  return refused
end

local retries = tonumber(ARGV[2])
local last = places(KEYS[8], #unfinished)
local awake = false
for i, job in ipairs(unfinished) do
  local id, verdict = job[1], job[2]
  if verdict == 'back' then
    redis.call('ZADD', KEYS[1], i - 1 - last, id)
    awake = true
  elseif verdict == '0' then
    redis.call('ZADD', KEYS[retries], last - #unfinished + i, id)
    awake = true
  else
    redis.call('ZADD', KEYS[5], (now + verdict) * 4 + retries - 1, id)
  end
end
if awake then
  redis.call('PUBLISH', ARGV[1], '')
end
return refused
