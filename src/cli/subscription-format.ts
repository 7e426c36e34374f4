/** Subscriptions as the command line finds and shows them: with the process that runs each of them. */
import { AftercommitError } from '../errors.ts'
import { closest, toPlain } from '../events/index.ts'
import type { Aftercommit, ProcessStatus, SubscriptionState } from '../index.ts'
import { formatDuration } from '../runtime/index.ts'
import type { Column } from './table.ts'

export interface ShownSubscription extends SubscriptionState {
  /** The process that owns it; undefined when nobody does, or when it has not been heard of. */
  readonly runBy: ProcessStatus | undefined
}

export async function readSubscriptions(ac: Aftercommit): Promise<ShownSubscription[]> {
  const states = await ac.subscriptions.list()
  const { processes } = await ac.status()
  return states.map((state) => ({ ...state, runBy: processes.find(({ process }) => process === state.owner) }))
}

export async function findSubscription(ac: Aftercommit, id: string): Promise<ShownSubscription> {
  const known = await readSubscriptions(ac)
  const found = known.find((one) => one.id === id)
  if (found) return found
  const near = closest(
    id,
    known.map((one) => one.id),
  )
  const advice = near === undefined ? 'See: aftercommit subscriptions list' : `Did you mean ${JSON.stringify(near)}?`
  throw new AftercommitError(
    'UNKNOWN_SUBSCRIPTION',
    `There is no subscription ${JSON.stringify(id)} in this database, so nothing was done. ${advice}`,
  )
}

export const SUBSCRIPTION_COLUMNS: readonly Column[] = [
  { title: 'id', min: 12 },
  { title: 'status' },
  { title: 'position', align: 'right' },
  { title: 'lag', align: 'right' },
  { title: 'behind', align: 'right' },
  { title: 'owner', min: 8 },
  { title: 'dead', align: 'right' },
  { title: 'parked', align: 'right' },
]

export function toSubscriptionRow(one: ShownSubscription): string[] {
  return [
    one.id,
    one.status,
    String(one.position),
    String(one.lag),
    one.lag === 0n ? '–' : formatSpan(one.lagSeconds),
    formatOwner(one) ?? '–',
    String(one.deadLetters),
    String(one.parked),
  ]
}

/** `host:pid`; an owner that no process answers for by its id. */
export function formatOwner({ owner, runBy }: ShownSubscription): string | null {
  return runBy === undefined ? owner : `${runBy.host}:${runBy.pid}`
}

export function toSubscriptionJson({ runBy, owner, ...state }: ShownSubscription): object {
  const { host = null, pid = null, version = null } = runBy ?? {}
  return { ...(toPlain(state) as object), owner: owner === null ? null : { process: owner, host, pid, version } }
}

/** Roughly, in one unit: a column has no room for `5 min 3 s`. */
export function formatSpan(seconds: number): string {
  const unit = [86_400, 3_600, 60, 1].find((size) => seconds >= size) ?? 1
  return formatDuration(Math.floor(Math.max(0, seconds) / unit) * unit * 1_000)
}
