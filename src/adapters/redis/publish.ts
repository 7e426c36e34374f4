import type { AnyEvent } from '../../log/index.ts'
import { lastKeyOf } from './address.ts'
import type { Client } from './connection.ts'
import { writeOpenMessage } from './message.ts'

export interface Publication {
  readonly channel: string
  readonly epoch: number
  /** How far the log has come: a mark beyond is not ours. */
  readonly position: bigint
  readonly origin: string
  readonly events: readonly AnyEvent[]
}

/** One message per event, in order, in one round trip. */
export async function publish(
  client: Client,
  { channel, epoch, position, origin, events }: Publication,
): Promise<void> {
  const messages = events.flatMap((event) => [String(event.position), writeOpenMessage(event, epoch, origin)])
  await client.eval(PUBLISH, {
    keys: [lastKeyOf(channel)],
    arguments: [channel, String(epoch), String(mostOf(position, events)), ...messages],
  })
}

/**
 * Which message was before is remembered in Redis, beside the channel: whoever takes over publishing goes on with the
 * same chain. An event that is published again leaves the mark where it is. Positions have up to 19 digits, which the
 * numbers of Lua cannot hold: they are compared as text. The mark is anybody's to write: what is no text, no mark of this
 * epoch or lies beyond the log is replaced, and listeners are told of a gap.
 */
const PUBLISH = `
  local epoch = ARGV[2]
  local mark = redis.pcall('GET', KEYS[1])
  local last = type(mark) == 'string' and string.match(mark, '^' .. epoch .. ':(%d+)$') or nil
  local most = ARGV[3]
  if last and (#last > #most or (#last == #most and last > most)) then last = nil end
  for i = 4, #ARGV, 2 do
    local position = ARGV[i]
    local previous = last and '"' .. last .. '"' or 'null'
    redis.call('PUBLISH', ARGV[1], ARGV[i + 1] .. ',"previous":' .. previous .. '}')
    if not last or #position > #last or (#position == #last and position > last) then last = position end
  end
  redis.call('SET', KEYS[1], epoch .. ':' .. last)`

function mostOf(position: bigint, events: readonly AnyEvent[]): bigint {
  const last = events.at(-1)!.position
  return last > position ? last : position
}
