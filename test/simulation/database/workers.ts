/** The lease of workers: src/delivery/worker-statements.ts. */
import { LEASE_SECONDS } from '../../../src/delivery/worker-statements.ts'
import { changed, rowsOf } from './answers.ts'
import type { Statement } from './statements.ts'
import type { Store } from './store.ts'
import type { NameOfWork, WorkerRow } from './tables.ts'

const LEASE_MS = LEASE_SECONDS * 1_000

export const WORKERS = {
  enlistWorker: {
    says: /^insert into \S+\.delivery_workers \(worker, process, lease_until, names, locks\)/,
    run(store, [worker, process, names, locks]) {
      store.workers.set(worker as string, {
        worker: worker as string,
        process: process as string,
        leaseUntil: store.now + LEASE_MS,
        names: JSON.parse(names as string) as NameOfWork[],
        locks: locks as boolean,
      })
      return changed(1)
    },
  },
  noteUnknownWorkers: {
    says: /^insert into \S+\.delivery_workers \(worker, process, lease_until\) select distinct/,
    run(store) {
      for (const { worker, token } of store.deliveries.values()) {
        if (token === null || worker === null || store.workers.has(worker)) continue
        store.workers.set(worker, { worker, process: '', leaseUntil: -1, names: [], locks: false })
      }
      return changed(0)
    },
  },
  nudgeWorkers: {
    says: /^select pg_catalog\.pg_notify/,
    run(store) {
      store.witness.onNudge()
      return rowsOf([])
    },
  },
  dismissWorker: {
    says: /set lease_until = '-infinity' where worker = \$1::text$/,
    run(store, [worker]) {
      expire(store, [worker as string])
      return changed(1)
    },
  },
  expireWorkers: {
    says: /set lease_until = '-infinity' where worker = any/,
    run(store, [workers]) {
      expire(store, JSON.parse(workers as string) as string[])
      return changed(1)
    },
  },
  renewWorker: {
    says: /^with renewed as \(/,
    run(store, [worker, names, locks]) {
      const own = store.workers.get(worker as string)
      const held = own !== undefined && own.leaseUntil > store.now
      const all = [...store.workers.values()]
      const expired = all.some((one) => one.leaseUntil <= store.now)
      const others = all.filter((one) => one !== own && one.leaseUntil > store.now)
      if (held) {
        own.leaseUntil = store.now + LEASE_MS
        own.locks = locks as boolean
        if (names !== null) own.names = JSON.parse(names as string) as NameOfWork[]
      }
      const namesOf = (workers: WorkerRow[]) => (workers.length === 0 ? null : workers.map((one) => one.worker))
      return rowsOf([
        {
          held,
          others: namesOf(others),
          lockless: namesOf(others.filter((one) => one.locks && !store.locks.has(one.process))),
          version: '0',
          marked: false,
          expired,
          troubled: null,
          limited: null,
          resting: null,
        },
      ])
    },
  },
  noteRunning: {
    says: /set running = \(\$2::text\)::jsonb where worker/,
    run: () => changed(0),
  },
  selectExpiredWorkers: {
    says: /^select worker from \S+ where lease_until <= clock_timestamp\(\) for update/,
    run: (store) =>
      rowsOf(
        [...store.workers.values()].filter((one) => one.leaseUntil <= store.now).map(({ worker }) => ({ worker })),
      ),
  },
  forgetWorkers: {
    says: /^delete from \S+\.delivery_workers w/,
    run(store, [text]) {
      const claiming = new Set(
        [...store.deliveries.values()].map(({ token, worker }) => (token === null ? '' : worker)),
      )
      const asked = JSON.parse(text as string) as string[]
      const gone = asked.map((worker) => store.workers.get(worker)).filter((one) => one !== undefined)
      const free = gone.filter(({ worker }) => !claiming.has(worker))
      for (const { worker } of free) store.workers.delete(worker)
      const undo = () => {
        for (const one of free) store.workers.set(one.worker, one)
      }
      return { ...changed(free.length), undo }
    },
  },
  selectPaused: {
    says: /^select kind, name, null as destination from/,
    run: () => rowsOf([]),
  },
  confirmVersion: {
    says: /set seen = \(\$2::text\)::bigint/,
    run: () => changed(1),
  },
} satisfies Record<string, Statement>

function expire(store: Store, workers: readonly string[]): void {
  for (const worker of workers) {
    const row = store.workers.get(worker)
    if (row) row.leaseUntil = -1
  }
}
