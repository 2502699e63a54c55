-- Takes the first ids in line and leases them, as one grant.
--
-- KEYS[1] ready     zset  id by place in line
-- KEYS[2] leased    zset  id by grant
-- KEYS[3] grants    zset  grant by deadline, ms
-- KEYS[4] sequence  integer
-- ARGV[1] how many at most; at most 500
-- ARGV[2] how long the lease is, ms
-- Returns the grant's number and the ids.
--
-- Why grants: the number is what a worker shows when it acknowledges, so one that lost its lease cannot speak for the
-- one that has it; and a renewal costs one write a batch, not one a job.

local popped = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
if #popped == 0 then
  return { 0, {} }
end

local time = redis.call('TIME')
local grant = redis.call('INCR', KEYS[4])
if grant == 1 then
  grant = time[1] * 1000000 + time[2]
  redis.call('SET', KEYS[4], grant)
end

local ids, leases = {}, {}
for i = 1, #popped, 2 do
  ids[#ids + 1] = popped[i]
  leases[i] = grant
  leases[i + 1] = popped[i]
end
redis.call('ZADD', KEYS[2], unpack(leases))
redis.call('ZADD', KEYS[3], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2], grant)
return { grant, ids }
