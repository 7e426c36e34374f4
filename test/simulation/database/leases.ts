/** Owners of subscriptions: src/subscriptions/lease-statements.ts. */
import { changed, rowsOf } from './answers.ts'
import { formatRanges } from './ranges.ts'
import type { Statement } from './statements.ts'

export const LEASES = {
  takeLeases: {
    says: /for update of p skip locked/,
    run(store, [lease, wantedText, force, former]) {
      const wanted = JSON.parse(wantedText as string) as { id: string; generation: string }[]
      const rows: Record<string, unknown>[] = []
      for (const { id, generation } of wanted) {
        const subscription = store.subscriptions.get(id)
        const partition = store.partitions.get(id)
        if (!subscription || !partition || subscription.generation !== Number(generation)) continue
        if (subscription.paused || subscription.status === 'stopped') continue
        const { owner } = partition
        if (owner !== null && owner !== lease && store.lives(owner) && force !== true) continue
        const wasClean = partition.clean
        const isAlive = owner === null || (JSON.parse(former as string) as string[]).includes(owner)
        partition.deaths = wasClean ? 0 : partition.deaths + (isAlive ? 0 : 1)
        partition.owner = lease as string
        partition.term++
        partition.clean = false
        rows.push({
          id,
          term: String(partition.term),
          pos: String(partition.position),
          done: formatRanges(partition.done),
          clean: wasClean,
          deaths: partition.deaths,
          save: String(partition.save),
          settled: partition.settled,
          kept_from: '0',
          server: String(store.server),
          status: subscription.status,
          reason: subscription.reason,
          forked_at: null,
        })
        store.witness.onTerm(id)
      }
      return rowsOf(rows)
    },
  },
  selectStandings: {
    says: /^select s\.id, s\.generation::text as generation, s\.paused, s\.status from jsonb_array_elements/,
    run(store, [lease, heldText]) {
      const rows: Record<string, unknown>[] = []
      for (const { id, term } of JSON.parse(heldText as string) as { id: string; term: string }[]) {
        const partition = store.ours(id, term)
        const { generation, paused, status } = store.subscriptions.get(id)!
        if (partition?.owner === lease) rows.push({ id, generation: String(generation), paused, status })
      }
      return rowsOf(rows)
    },
  },
  releaseLease: {
    says: /set owner = null, clean = \$3::boolean/,
    run(store, [id, term, clean, , failed]) {
      const partition = store.ours(id as string, term as string)
      if (!partition) return changed(0)
      partition.owner = null
      partition.clean = clean as boolean
      partition.deaths += Number(failed)
      return changed(1)
    },
  },
} satisfies Record<string, Statement>
