-- Tells which server has the queue, how it keeps what it is told, and whether the queue's names are free.
--
-- KEYS[1..n] every key of the queue
-- ARGV[1..n] the type of each, once it is there
-- Returns INFO's sections `server`, `memory` and `persistence`; then the position and the type of the first key that is of
-- another type, or 0 and ''.
--
-- INFO three times, for servers before 7.0 take one section a call, and are to be told that they are too old.

local info = ''
for _, section in ipairs({ 'server', 'memory', 'persistence' }) do
  info = info .. redis.call('INFO', section) .. '\r\n'
end
for position, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key)['ok']
  if found ~= 'none' and found ~= ARGV[position] then
    return { info, position, found }
  end
end
return { info, 0, '' }
