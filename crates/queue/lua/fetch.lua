-- Takes the first ids in line and leases them, as one grant.
--
-- KEYS[1..4] lanes     zset    id by place in line
-- KEYS[5]    leased    zset    id by grant
-- KEYS[6]    grants    zset    grant by deadline, ms
-- KEYS[7]    sequence  integer
-- KEYS[8]    fetched   hash    `turn`: turns taken so far; `at`: when, ms
-- KEYS[9]    paused    string, there while the queue is paused
-- ARGV[1] how many at most; at most 500
-- ARGV[2] how long the lease is, ms
-- Returns the grant's number and the ids.
--
-- Why grants: the number is what a worker shows when it acknowledges, so one that lost its lease cannot speak for the
-- one that has it; and a renewal costs one write a batch, not one a job.
-- Why no `ZPOPMIN`, and the grant as text: to write a number as text costs the server more than the rest of an id's way.

local waiting, total = {}, 0
for lane = 1, 4 do
  waiting[lane] = redis.call('ZCARD', KEYS[lane])
  total = total + waiting[lane]
end
local count = math.min(tonumber(ARGV[1]), total)
if count == 0 or redis.call('EXISTS', KEYS[9]) == 1 then
  return { 0, {} }
end

-- Whose turn it is: of 15 turns every second is lane 1's, every second of the others lane 2's, and so on: 8, 4, 2 and 1.
-- A turn that its lane cannot use goes to the first that can.
local turn = tonumber(redis.call('HGET', KEYS[8], 'turn') or 0)
local rounds = math.floor(count / 15)
local turns = { 8 * rounds, 4 * rounds, 2 * rounds, rounds }
for position = turn, turn + count % 15 - 1 do
  local rest, lane = position % 15 + 1, 1
  while rest % 2 == 0 do
    rest, lane = rest / 2, lane + 1
  end
  turns[lane] = turns[lane] + 1
end
local unused = count
for lane = 1, 4 do
  turns[lane] = math.min(turns[lane], waiting[lane])
  unused = unused - turns[lane]
end
for lane = 1, 4 do
  local more = math.min(unused, waiting[lane] - turns[lane])
  turns[lane] = turns[lane] + more
  unused = unused - more
end

local ids = {}
for lane = 1, 4 do
  if turns[lane] > 0 then
    local first = redis.call('ZRANGE', KEYS[lane], 0, turns[lane] - 1)
    redis.call('ZREMRANGEBYRANK', KEYS[lane], 0, turns[lane] - 1)
    for _, id in ipairs(first) do
      ids[#ids + 1] = id
    end
  end
end

local grant = places(KEYS[7], 1)
local leases, score = {}, string.format('%d', grant)
for i, id in ipairs(ids) do
  leases[2 * i - 1] = score
  leases[2 * i] = id
end
redis.call('ZADD', KEYS[5], unpack(leases))
redis.call('ZADD', KEYS[6], now + ARGV[2], grant)
redis.call('HSET', KEYS[8], 'turn', (turn + count) % 15, 'at', now)
return { grant, ids }
