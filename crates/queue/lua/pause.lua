-- Has nothing handed out, or has it handed out again.
--
-- KEYS[1] paused  string, there while the queue is paused
-- ARGV[1] channel that wakes idle workers
-- ARGV[2] 1 to pause, 0 to go on
-- Returns nothing.

if ARGV[2] == '1' then
  redis.call('SET', KEYS[1], now)
else
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[1], '')
end
