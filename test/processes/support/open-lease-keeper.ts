/** The lease of a process on a database of its own; the test says what becomes of its lock. Ended with the test. */
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { ProcessLock } from '../../../src/postgres/index.ts'
import { LeaseKeeper } from '../../../src/processes/index.ts'
import { type Clock, createHealth, createRegistry, systemClock } from '../../../src/runtime/index.ts'
import { openDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

export interface OpenLeaseKeeper {
  readonly keeper: LeaseKeeper
  readonly process: string
  /** The test changes it. */
  readonly lock: { -readonly [K in keyof ProcessLock]: ProcessLock[K] }
  /** What watchers were told: `held`, `lost` or `freed`. */
  readonly told: string[]
}

export async function openLeaseKeeper(
  url: string,
  { clock = systemClock }: { clock?: Clock } = {},
): Promise<OpenLeaseKeeper> {
  const database = openDatabase({ database: url })
  const process = randomUUID()
  const lock = { holds: true, possible: true, gained: 1, lacks: false, key: null }
  const told: string[] = []
  const keeper = new LeaseKeeper({
    database,
    clock,
    logger: database.logger,
    metrics: createRegistry({ clock: systemClock }),
    health: createHealth({ clock: systemClock }),
    info: { process, host: 'test', pid: 1, version: '0', configHash: '0' },
    lock: () => ({ ...lock }),
  })
  keeper.watch({
    onHeld: () => told.push('held'),
    onLost: () => told.push('lost'),
    onFreed: () => told.push('freed'),
  })
  onTestFinished(() => keeper.stop())
  await keeper.start()
  await eventually(() => keeper.current !== undefined)
  return { keeper, process, lock, told }
}
