-- Writes a trifle, which a server that only answers cannot.
--
-- KEYS[1] fetched  hash  `probed`: when this last ran, ms
-- Returns nothing.

redis.call('HSET', KEYS[1], 'probed', now)
