/** Leases of processes: src/processes/statements.ts. */
import { LEASE_MS } from '../../../src/processes/index.ts'
import { changed, rowsOf } from './answers.ts'
import type { Statement } from './statements.ts'

export const PROCESSES = {
  registerProcess: {
    says: /insert into db\.processes/,
    run(store, [process]) {
      const name = process as string
      if (!store.processes.has(name)) {
        store.processes.set(name, { process: name, lease: null, leaseUntil: 0, locked: false })
      }
      return changed(1)
    },
  },
  beginLease: {
    says: /set lease = \$2::text, locked/,
    run(store, [process, lease, locked]) {
      const row = store.processes.get(process as string)
      if (!row) return changed(0)
      Object.assign(row, { lease, locked, leaseUntil: store.now + LEASE_MS })
      return changed(1)
    },
  },
  lookAtLeases: {
    says: /from db\.live_leases where process <> \$1::text/,
    run(store, [process, lease, locked, renew]) {
      const live = store.liveLeases()
      const own = live.find((row) => row.process === process && row.lease === lease)
      if (own && renew === true) Object.assign(own, { leaseUntil: store.now + LEASE_MS, locked })
      const others = live.filter((row) => row.process !== process)
      const named = (rows: typeof others) => rows.map((row) => row.lease)
      return rowsOf([
        { held: own !== undefined, others: named(others), lockless: named(others.filter(store.isLockless)) },
      ])
    },
  },
  endGoneLeases: {
    says: /where l\.lockless and l\.lease = any/,
    run(store, [leases]) {
      const gone = store.liveLeases().filter(store.isLockless)
      const asked = gone.filter(({ lease }) => (JSON.parse(leases as string) as unknown[]).includes(lease))
      for (const row of asked) Object.assign(row, { lease: null, leaseUntil: 0 })
      return changed(asked.length)
    },
  },
  endLease: {
    says: /^update db\.processes set lease_until = null, lease = null where lease = \$1::text$/,
    run(store, [lease]) {
      const row = [...store.processes.values()].find((one) => one.lease === lease)
      if (row) Object.assign(row, { lease: null, leaseUntil: 0 })
      return changed(row ? 1 : 0)
    },
  },
  /** Of leases and of workers. */
  notify: {
    says: /^select pg_catalog\.pg_notify\(\$1::text, \$2::text\)$/,
    run(store, [, word]) {
      store.witness.onWord(word as string)
      return rowsOf([])
    },
  },
} satisfies Record<string, Statement>
