/** What is wrong with deliveries, or could become so, and what mends it. The judging is pure: facts in, findings out. */
import { type Finding, ok, type Queryable, SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { type Clock, formatDuration } from '../runtime/index.ts'
import { type DestinationState, type OrphanedWork, selectDestinations, selectOrphans } from './inspect-work.ts'

export interface DeliveryFacts {
  readonly orphans: readonly OrphanedWork[]
  readonly destinations: readonly DestinationState[]
  readonly now: Date
}

export async function diagnoseDeliveries(db: Queryable, clock: Clock): Promise<Finding[]> {
  try {
    const [orphans, destinations] = await Promise.all([selectOrphans(db), selectDestinations(db)])
    return deliveryFindings({ orphans, destinations, now: clock.now() })
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

export function deliveryFindings({ orphans, destinations, now }: DeliveryFacts): Finding[] {
  const open = destinations.filter(({ circuit }) => circuit !== 'closed')
  const long = open.filter(({ openedAt }) => now.getTime() - openedAt!.getTime() >= LONG_OPEN_MS)
  return [
    ...(orphans.length === 0 ? [ok('deliveries', 'every name with work has a worker')] : orphans.map(orphan)),
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

function describeOpen(count: number): string {
  return count === 0 ? 'all are closed' : `${count} open, none for long`
}

/** For a shell. */
function quote(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
