/** What must happen at once in Redis. See cache-store.ts for what the notes mean. */

/** KEYS: the keys, then as many notes of loads. ARGV: position. Gives how many keys were there. */
export const INVALIDATE = `
  local removed = 0
  local count = #KEYS / 2
  for i = 1, count do
    local wanted = redis.call('HGET', KEYS[count + i], 'position')
    if wanted and wanted < ARGV[1] then redis.call('HSET', KEYS[count + i], 'position', ARGV[1]) end
    removed = removed + redis.call('UNLINK', KEYS[i])
  end
  return removed`

/** KEYS: note of the load, note of what was loaded. ARGV: position, token, milliseconds. */
export const BEGIN = `
  local loaded = redis.call('GET', KEYS[2])
  if loaded and loaded >= ARGV[1] then return 'done' end
  local wanted = redis.call('HGET', KEYS[1], 'position')
  if wanted then
    if wanted < ARGV[1] then redis.call('HSET', KEYS[1], 'position', ARGV[1]) end
    return 'busy'
  end
  redis.call('HSET', KEYS[1], 'token', ARGV[2], 'position', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 'mine'`

/**
 * KEYS: the key and both notes. ARGV: token, position the load began with, milliseconds for another load, for the note of
 * what was loaded and for the value or an empty text, and the value unless there is none. Gives the position to load
 * for again when that was raised.
 */
export const STORE = `
  if redis.call('HGET', KEYS[2], 'token') ~= ARGV[1] then return 'lost' end
  local wanted = redis.call('HGET', KEYS[2], 'position')
  if wanted ~= ARGV[2] then
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
    return wanted
  end
  if not ARGV[6] then redis.call('UNLINK', KEYS[1])
  elseif ARGV[5] == '' then redis.call('SET', KEYS[1], ARGV[6])
  else redis.call('SET', KEYS[1], ARGV[6], 'PX', ARGV[5]) end
  redis.call('SET', KEYS[3], wanted, 'PX', ARGV[4])
  redis.call('UNLINK', KEYS[2])
  return 'stored'`

/** KEYS: note of the load. ARGV: token. */
export const END = `
  if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('UNLINK', KEYS[1]) end`
