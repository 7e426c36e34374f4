/** Workers: src/delivery/worker-statements.ts. Whether they live says the lease of that name. */
import { changed, rowsOf } from './answers.ts'
import type { Statement } from './statements.ts'
import type { NameOfWork } from './tables.ts'

export const WORKERS = {
  enlistWorker: {
    says: /^insert into \S+\.delivery_workers \(worker, process, names\)/,
    run(store, [worker, process, names]) {
      store.workers.set(worker as string, {
        worker: worker as string,
        process: process as string,
        names: JSON.parse(names as string) as NameOfWork[],
      })
      return changed(1)
    },
  },
  noteUnknownWorkers: {
    says: /^insert into \S+\.delivery_workers \(worker, process\) select distinct/,
    run(store) {
      for (const { worker, token } of store.deliveries.values()) {
        if (token === null || worker === null || store.workers.has(worker)) continue
        store.workers.set(worker, { worker, process: '', names: [] })
      }
      return changed(0)
    },
  },
  dismissWorker: {
    says: /set names = '\[\]', running = '\{\}', seen = /,
    run(store, [worker]) {
      const own = store.workers.get(worker as string)
      if (own) own.names = []
      return changed(1)
    },
  },
  askForNews: {
    says: /^with renamed as \(/,
    run(store, [worker, names]) {
      const own = store.workers.get(worker as string)
      if (own && names !== null) own.names = JSON.parse(names as string) as NameOfWork[]
      const all = [...store.workers.values()]
      return rowsOf([
        {
          listed: own !== undefined && store.lives(own.worker),
          others: all.filter((one) => one !== own && store.lives(one.worker)).length,
          version: '0',
          marked: false,
          gone: all.some((one) => !store.lives(one.worker)),
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
  selectGoneWorkers: {
    says: /^select worker from \S+ w where not exists .* for update/,
    run: (store) =>
      rowsOf([...store.workers.values()].filter((one) => !store.lives(one.worker)).map(({ worker }) => ({ worker }))),
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
      const commit = () => {
        for (const { worker } of free) store.workers.delete(worker)
      }
      return { ...changed(free.length), commit }
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
