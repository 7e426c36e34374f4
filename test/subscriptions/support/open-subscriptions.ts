/** A log with an instance on it, short words for emitting, and a handler that writes down what it was called with. */
import type pg from 'pg'
import type { EventDefinitions } from '../../../src/events/index.ts'
import type { Aftercommit } from '../../../src/instance.ts'
import type { Emitted } from '../../../src/log/index.ts'
import type { AftercommitOptions } from '../../../src/options.ts'
import type { HandlerContext } from '../../../src/subscriptions/index.ts'
import { instance, type OpenLog, openLog } from '../../log/support/open-log.ts'
import { eventually } from '../../support/eventually.ts'

/** Four tries in a tenth of a second. */
export const QUICK = { maxAttempts: 4, initialDelay: '10ms', maxDelay: '40ms' } as const

export interface EmitWords {
  readonly key?: string
  readonly type?: string
  readonly tenant?: string
  readonly payload?: object
}

export interface OpenSubscriptions extends OpenLog {
  emit(id: string, words?: EmitWords): Promise<Emitted>
  /** `n` events in one statement with ids `prefix1` and so on, over `keys` keys in turn. */
  emitMany(n: number, words?: { prefix?: string; keys?: number; type?: string }): Promise<void>
  /** Another process, as far as the database can tell. */
  another(options?: Partial<AftercommitOptions>): Aftercommit
}

export async function openSubscriptions(
  options: Omit<AftercommitOptions, 'database'> & { major?: 18 | 14 } = {},
): Promise<OpenSubscriptions> {
  const log = await openLog(options)
  const { major: _, ...own } = options
  return {
    ...log,
    emit: (id, words) => emit(log.ac, id, words),
    emitMany: (n, words) => emitMany(log.sql, n, words),
    another: (others = {}) => instance({ ...own, ...others, database: log.url }),
  }
}

export function emit(
  ac: Aftercommit<EventDefinitions>,
  id: string,
  { key, type = 'lamp.lit', tenant, payload = {} }: EmitWords = {},
): Promise<Emitted> {
  return ac.transaction((tx) =>
    tx.emit(type, {
      id,
      payload,
      ...(key === undefined ? {} : { aggregate: { type: 'lamp', id: key } }),
      ...(tenant === undefined ? {} : { tenant }),
    }),
  )
}

export async function emitMany(
  sql: pg.Client,
  n: number,
  { prefix = 'event-', keys = 10, type = 'lamp.lit' }: { prefix?: string; keys?: number; type?: string } = {},
): Promise<void> {
  await sql.query(
    `select aftercommit.emit($2, 'lamp', (n % $3)::text, '{}', id => $4 || n) from generate_series(1, $1::int) n`,
    [n, type, keys, prefix],
  )
}

export interface Call {
  readonly id: string
  readonly key: string
  readonly position: bigint
  readonly attempt: number
}

export interface Recorder {
  readonly calls: readonly Call[]
  readonly ids: readonly string[]
  readonly handle: (event: CalledWith, context: HandlerContext) => void
  /** Resolves when the event was handled so often. */
  sees(id: string, times?: number): Promise<void>
}

interface CalledWith {
  readonly id: string
  readonly key: string
  readonly position: bigint
}

/** `behave` runs after the call was written down; what it throws is what the handler throws. */
export function recorder(behave: (call: Call) => unknown = () => {}): Recorder {
  const calls: Call[] = []
  return {
    calls,
    get ids() {
      return calls.map(({ id }) => id)
    },
    handle({ id, key, position }, { attempt }) {
      const call = { id, key, position, attempt }
      calls.push(call)
      return behave(call) as undefined
    },
    async sees(id, times = 1) {
      await eventually(() => calls.filter((call) => call.id === id).length >= times, { every: 5 })
    },
  }
}

/** A promise and the way to end it. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

export function numbered(n: number, prefix = 'event-'): string[] {
  return Array.from({ length: n }, (_, i) => `${prefix}${i + 1}`)
}
