/** 32 writers and one reader: our bell, a NOTIFY in every commit, and no bell at all. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atLeast } from '../goals.mjs'
import { connect, insertText, insertValues, perSecond, takeTurns, withLog } from '../measure.mjs'

const writers = 32

export function run({ url, ms, rounds }) {
  return withLog(url, 'bench_bell', () =>
    withLog(url, 'bench_notify', async () => {
      const { clients, end } = await connect(url, writers)
      await clients[0].query(`create or replace function bench_notify.ring() returns trigger language plpgsql as
        $$ begin perform pg_notify('bench_notify_bell', ''); return null; end $$`)
      await clients[0].query(`create table bench_bell.silent (like bench_bell.events including all)`)
      await clients[0].query(`alter table bench_bell.silent alter position set default nextval('bench_bell.positions')`)
      await clients[0].query('create index on bench_bell.silent (id)')
      const readers = await Promise.all(['bench_bell', 'bench_notify'].map((schema) => startReader(url, schema)))
      const rates = await takeTurns(
        {
          silent: (n) => clients[n].query(insertText('bench_bell.silent'), insertValues()),
          doorbell: (n) => clients[n].query(insertText('bench_bell.events'), insertValues()),
          notify: (n) => clients[n].query(insertText('bench_notify.events'), insertValues()),
        },
        { rounds, ms, writers },
      )
      for (const stop of readers) await stop()
      await end()
      return {
        title: `bell: ${writers} writers, one event per transaction, a reader in another process`,
        figures: [
          ['no bell', perSecond(rates.silent)],
          ['doorbell', perSecond(rates.doorbell)],
          ['NOTIFY in every commit', perSecond(rates.notify)],
        ],
        goals: [atLeast('doorbell / NOTIFY in every commit', rates.doorbell / rates.notify, 2)],
      }
    }),
  )
}

async function startReader(url, schema) {
  const child = fork(fileURLToPath(new URL('../reader.mjs', import.meta.url)), [url, schema])
  await once(child, 'message')
  return async () => {
    child.send('stop')
    await once(child, 'exit')
  }
}
