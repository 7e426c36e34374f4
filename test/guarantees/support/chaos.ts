/** What a chaos run is made of: places that always have a process, a writer that never gives up, and faults. */
import { setTimeout as breathe } from 'node:timers/promises'
import type pg from 'pg'
import type { Aftercommit } from '../../../src/instance.ts'
import type { OwnServer } from '../../log/support/own-server.ts'
import { eventually } from '../../support/eventually.ts'
import type { TestProcess } from '../../support/processes.ts'

/** As an orchestrator does it: a process that has ended is started again at once. */
export function keepRunning(start: () => Promise<TestProcess>) {
  const past: TestProcess[] = []
  let over = false
  let live: TestProcess | undefined
  const ended = (async () => {
    while (!over) {
      // One that was killed, or found no database, before it had said that it started.
      const worker = await start().catch(() => undefined)
      if (worker === undefined) continue
      past.push(worker)
      live = worker
      // Asked to end while it was starting.
      if (over) worker.kill('SIGTERM')
      await worker.exited
      live = undefined
    }
  })()
  return {
    past,
    current: () => past.at(-1),
    /** The one that runs, awaited after a kill: what is left to do may be done by others before the next has started. */
    running: () => eventually(() => live),
    /** Ends the process in good order and starts no other. */
    async stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null } | undefined> {
      over = true
      past.at(-1)?.kill('SIGTERM')
      await ended
      return past.at(-1)?.exited
    },
  }
}

export interface ChaosWriter {
  /** In the order of emitting; each was committed once, whatever its COMMIT was answered with. */
  readonly ids: readonly string[]
  stop(): Promise<void>
}

/** Some `perSecond` events a second over 20 keys. Ids are chosen, so that what has no answer can be repeated. */
export function startWriter(ac: Aftercommit, perSecond: number, payload: object): ChaosWriter {
  const ids: string[] = []
  let running = true
  const began = performance.now()
  const emitOne = async (n: number) => {
    const id = `event-${n}`
    const aggregate = { type: 'lamp', id: String(n % 20) }
    for (;;) {
      try {
        await ac.transaction((tx) => tx.emit('lamp.lit', { id, aggregate, payload }))
        return ids.push(id)
      } catch {
        await breathe(50)
      }
    }
  }
  const ended = (async () => {
    for (let n = 1; running; n++) {
      await emitOne(n)
      await breathe(Math.max(0, (n / perSecond) * 1_000 - (performance.now() - began)))
    }
  })()
  return {
    ids,
    async stop() {
      running = false
      await ended
    },
  }
}

export interface Arena {
  readonly server: OwnServer
  readonly places: readonly ReturnType<typeof keepRunning>[]
  /** A session of the test's own; null while the server is away. */
  sql(): Promise<pg.Client | null>
}

export type Fault = (arena: Arena) => Promise<void>

const FAULTS: Record<string, Fault> = {
  async 'kill a worker'({ places }) {
    oneOf(places).current()?.kill('SIGKILL')
  },
  async 'kill the owner'({ places, sql }) {
    const client = await sql()
    const { rows } = (await client?.query(
      `select r.pid from aftercommit.subscription_partitions p join aftercommit.processes r on r.lease = p.owner limit 1`,
    )) ?? { rows: [] }
    const owner = places.find((place) => place.current()?.pid === rows[0]?.pid)
    owner?.current()?.kill('SIGKILL')
  },
  async 'end all sessions'({ sql }) {
    const client = await sql()
    await client?.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'aftercommit:%'`,
    )
  },
  async 'crash the server'({ server }) {
    process.kill(server.pid, 'SIGKILL')
    await server.start()
  },
  async 'restart the server'({ server }) {
    await server.stop()
    await server.start()
  },
  async 'pause a worker'({ places }) {
    const worker = oneOf(places).current()
    worker?.kill('SIGSTOP')
    await breathe(1_000 + Math.random() * 3_000)
    worker?.kill('SIGCONT')
  },
}

/** Every fault in turn, in random order, a few seconds apart, for so long. Answers what was done. */
export async function spreadChaos(arena: Arena, forMs: number): Promise<string[]> {
  const done: string[] = []
  const end = performance.now() + forMs
  let bag: string[] = []
  while (performance.now() < end) {
    await breathe(2_500 + Math.random() * 3_500)
    if (bag.length === 0) bag = Object.keys(FAULTS)
    const [name] = bag.splice(Math.floor(Math.random() * bag.length), 1)
    done.push(name!)
    await FAULTS[name!]!(arena)
  }
  return done
}

function oneOf<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)]!
}
