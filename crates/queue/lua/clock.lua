-- The server's clock, and places in line that are made of it. Stands before each script.

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Takes `count` places behind all that were taken, and returns the last of them. A place is the time in microseconds at
-- which it was taken, or the next after the last if that is later: so its age can be read, no memory that the server
-- loses makes it come twice, and a clock that goes back changes no order.
local function places(sequence, count)
  local last = math.max(tonumber(redis.call('GET', sequence) or 0), now_us - 1) + count
  redis.call('SET', sequence, last)
  return last
end
