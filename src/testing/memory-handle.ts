/** What a program holds of a subscription in memory: the words of the real handle. */
import type { AnyEvent } from '../log/index.ts'
import type { SeekPreview, SubscriptionHandle, SubscriptionState } from '../subscriptions/index.ts'
import type { LetterStore } from './memory-dead-letters.ts'
import type { MemoryLog } from './memory-log.ts'
import type { MemoryReader } from './memory-reader.ts'

export interface MemoryHandleParts {
  readonly log: MemoryLog
  readonly letters: LetterStore
  /** Delivers what a change made possible. */
  readonly deliver: () => Promise<void>
  /** Takes it off the bus; its checkpoint is kept. */
  readonly stop: (id: string) => void
  /** Forgets it with its checkpoint and letters. */
  readonly remove: (id: string) => void
}

export function createMemoryHandle(reader: MemoryReader, parts: MemoryHandleParts): SubscriptionHandle {
  const { log, letters, deliver, stop, remove } = parts
  const { id, matches } = reader.definition

  function preview(to: Parameters<SubscriptionHandle['seek']>[0]): SeekPreview {
    const from = reader.checkpoint.position
    const target = reader.checkpoint.find(to)
    const between = ({ position }: AnyEvent) =>
      target < from ? position > target && position <= from : position > from && position <= target
    const direction = target < from ? 'back' : target > from ? 'forward' : 'nowhere'
    return {
      from,
      to: target,
      events: log.events.filter((event) => between(event) && matches(event)).length,
      direction,
    }
  }

  async function seek(to: Parameters<SubscriptionHandle['seek']>[0]): Promise<SeekPreview> {
    const seen = preview(to)
    reader.seek(seen.to)
    await deliver()
    return seen
  }

  return {
    id,
    status: async () => stateOf(reader, log, letters),
    async pause() {
      reader.paused = true
    },
    async resume() {
      reader.paused = false
      reader.wake()
      await deliver()
    },
    previewSeek: async (to) => preview(to),
    seek,
    fastForward: () => seek('head'),
    remove: async () => remove(id),
    stop: async () => stop(id),
  }
}

export function stateOf(reader: MemoryReader, log: MemoryLog, letters: LetterStore): SubscriptionState {
  const { id, kind, on, tenant = null } = reader.definition
  const { position } = reader.checkpoint
  const open = letters.select({ owner: id }).filter(({ status }) => status === 'dead' || status === 'redriving')
  const parked = [...letters.parked(id).values()]
  const oldest = log.events.find((event) => event.position > position && event.position <= log.frontier)
  const now = log.now()
  return {
    id,
    kind,
    status: reader.paused ? 'paused' : reader.status,
    reason: reader.reason,
    position,
    lag: log.frontier - position,
    lagSeconds: oldest ? (now.getTime() - oldest.recordedAt.getTime()) / 1_000 : 0,
    owner: 'memory',
    term: 1n,
    lastEventId: reader.lastEventId,
    updatedAt: now,
    deadLetters: open.length,
    parked: parked.reduce((sum, events) => sum + events.length, 0),
    parkedKeys: parked.length,
    on,
    tenant,
  }
}
