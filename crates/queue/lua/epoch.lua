-- Names the memory of the queue.
--
-- KEYS[1] epoch  string
-- ARGV[1] epoch to take if there is none
-- Returns the epoch, a dot, and the run of the server: a name that it draws when it starts.
--
-- Why the run: a replica that takes over, or a server that comes back from its disk, has the key, and may have lost what
-- was written last.

local epoch = redis.call('GET', KEYS[1])
if not epoch then
  epoch = ARGV[1]
  redis.call('SET', KEYS[1], epoch)
end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
return epoch .. '.' .. (run or '')
