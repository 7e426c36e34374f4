/** What is wrong with deliveries, or could become so, and what mends it. The judging is pure: facts in, findings out. */
import { type Finding, ok, type Queryable, SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { type Clock, formatDuration } from '../runtime/index.ts'
import { selectVacuum, vacuumFinding } from './inspect-vacuum.ts'
import {
  type DeliveryPause,
  type DestinationState,
  type OrphanedWork,
  selectDestinations,
  selectOrphans,
  selectPauses,
} from './inspect-work.ts'
import { ITSELF } from './pause-statements.ts'

export interface DeliveryFacts {
  readonly orphans: readonly OrphanedWork[]
  readonly pauses: readonly DeliveryPause[]
  readonly destinations: readonly DestinationState[]
  readonly now: Date
}

export async function diagnoseDeliveries(db: Queryable, clock: Clock): Promise<Finding[]> {
  try {
    const [orphans, pauses, destinations, vacuum] = await Promise.all([
      selectOrphans(db),
      selectPauses(db),
      selectDestinations(db),
      selectVacuum(db),
    ])
    return [...deliveryFindings({ orphans, pauses, destinations, now: clock.now() }), vacuumFinding(vacuum)]
  } catch (error) {
    if (sqlstateOf(error) !== SQLSTATE.insufficientPrivilege) throw error
    const message = 'This role may not look at deliveries, so they were not looked at.'
    return [
      { level: 'note', check: 'deliveries', message, fix: 'As the owner: aftercommit migrate --grant-run <role>' },
    ]
  }
}

/** A circuit that is probed every five minutes at most has failed a few probes by then. */
const LONG_OPEN_MS = 10 * 60_000

export function deliveryFindings({ orphans, pauses, destinations, now }: DeliveryFacts): Finding[] {
  const gone = pauses.filter(({ who }) => who === ITSELF)
  const open = destinations.filter(({ circuit }) => circuit !== 'closed')
  const long = open.filter(({ openedAt }) => now.getTime() - openedAt!.getTime() >= LONG_OPEN_MS)
  return [
    ...(orphans.length === 0 ? [ok('deliveries', 'every name with work has a worker')] : orphans.map(orphan)),
    ...(gone.length > 0 ? gone.map(pause) : [ok('pauses', describePauses(pauses.length))]),
    ...(long.length > 0 ? long.map(circuit) : [ok('circuits', describeOpen(open.length))]),
  ]

  /** The database's clock may be a little ahead of ours. */
  function since(time: Date): string {
    return formatDuration(Math.max(0, now.getTime() - time.getTime()))
  }

  function orphan({ kind, name, count, oldest }: OrphanedWork): Finding {
    const age = since(oldest)
    return {
      level: 'warning',
      check: 'deliveries',
      message: `No process works on ${kind} ${JSON.stringify(name)}: ${count} to do, the oldest for ${age}.`,
      fix: `Start a process that registers it, or: aftercommit deliveries cancel --all-matching --kind ${kind} --name ${quote(name)}`,
    }
  }

  /** No person decided it, so perhaps none knows of it. */
  function pause({ kind, name, at, reason }: DeliveryPause): Finding {
    return {
      level: 'warning',
      check: 'pauses',
      message: `The ${kind} ${JSON.stringify(name)} has been paused for ${since(at)}: ${reason ?? 'nobody said why'}. What it is to do waits.`,
      fix: `Correct its address or remove it; then: aftercommit deliveries resume ${quote(name)} --kind ${kind}`,
    }
  }

  function circuit({ destination, openedAt, failures, waiting }: DestinationState): Finding {
    const age = since(openedAt!)
    return {
      level: 'warning',
      check: 'circuits',
      message: `The circuit of ${destination} has been open for ${age}, after ${failures} failures in a row; ${waiting} wait to go there.`,
      fix: `Mend the destination, or find out what it says: aftercommit deliveries list --destination ${quote(destination)}`,
    }
  }
}

function describePauses(count: number): string {
  if (count === 0) return 'no name is paused'
  return count === 1 ? '1 name is paused, by a person' : `${count} names are paused, by people`
}

function describeOpen(count: number): string {
  return count === 0 ? 'all are closed' : `${count} open, none for long`
}

/** For a shell. */
function quote(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
