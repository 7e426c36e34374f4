/** Leases of subscriptions: src/subscriptions/lease-statements.ts. */
import { LEASE_SECONDS } from '../../../src/subscriptions/lease-statements.ts'
import { changed, rowsOf } from './answers.ts'
import { formatRanges } from './ranges.ts'
import type { Statement } from './statements.ts'

const LEASE_MS = LEASE_SECONDS * 1_000

export const LEASES = {
  takeLeases: {
    says: /for update of p skip locked/,
    run(store, [process, wantedText, goneText, force, locked]) {
      const own = store.processes.get(process as string)
      if (own) own.locked = locked as boolean
      const wanted = JSON.parse(wantedText as string) as { id: string; generation: string }[]
      const gone = JSON.parse(goneText as string) as string[]
      const rows: Record<string, unknown>[] = []
      for (const { id, generation } of wanted) {
        const subscription = store.subscriptions.get(id)
        const partition = store.partitions.get(id)
        if (!subscription || !partition || subscription.generation !== Number(generation)) continue
        if (subscription.paused || subscription.status === 'stopped') continue
        const { owner, leaseUntil } = partition
        const isFree =
          owner === null || owner === process || (leaseUntil ?? 0) < store.now || force === true || gone.includes(owner)
        if (!isFree) continue
        const wasClean = partition.clean
        partition.deaths = wasClean ? 0 : partition.deaths + 1
        partition.owner = process as string
        partition.term++
        partition.clean = false
        partition.leaseUntil = store.now + LEASE_MS
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
  renewLeases: {
    says: /returning p\.id, s\.generation::text as generation, s\.paused/,
    run(store, [process, heldText]) {
      const rows: Record<string, unknown>[] = []
      for (const { id, term } of JSON.parse(heldText as string) as { id: string; term: string }[]) {
        const partition = store.ours(id, term)
        const subscription = store.subscriptions.get(id)!
        if (!partition || partition.owner !== process) continue
        partition.leaseUntil = store.now + LEASE_MS
        const { generation, paused, status } = subscription
        rows.push({ id, generation: String(generation), paused, status })
      }
      return rowsOf(rows)
    },
  },
  releaseLease: {
    says: /set owner = null, lease_until = null, clean = \$3::boolean/,
    run(store, [id, term, clean]) {
      const partition = store.ours(id as string, term as string)
      if (!partition) return changed(0)
      partition.owner = null
      partition.leaseUntil = null
      partition.clean = clean as boolean
      return changed(1)
    },
  },
  selectLockless: {
    says: /select distinct p\.owner/,
    run(store, [ids]) {
      const owners = new Set<string>()
      for (const id of JSON.parse(ids as string) as string[]) {
        const owner = store.partitions.get(id)?.owner ?? null
        if (owner === null || store.locks.has(owner)) continue
        if (store.processes.get(owner)?.locked ?? true) owners.add(owner)
      }
      return rowsOf([...owners].map((owner) => ({ owner })))
    },
  },
} satisfies Record<string, Statement>
