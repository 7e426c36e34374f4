/** What `status` says of deliveries: how many in each state, and what keeps some of them from being done. */
import type { Aftercommit, DeliveryPause, DeliveryState, DestinationState, OrphanedWork } from '../index.ts'
import { DESTINATION_COLUMNS, isHeldBack, toDestinationRow } from './destination-format.ts'
import type { Output } from './output.ts'
import { formatSpan } from './subscription-format.ts'

export interface DeliveryStatus {
  readonly states: Readonly<Record<DeliveryState, number>>
  readonly orphans: readonly OrphanedWork[]
  readonly pauses: readonly DeliveryPause[]
  /** Those that are paused, resting, or behind an open circuit. */
  readonly destinations: readonly DestinationState[]
}

export async function readDeliveryStatus({ deliveries }: Aftercommit): Promise<DeliveryStatus> {
  const [states, orphans, pauses, destinations] = await Promise.all([
    deliveries.count(),
    deliveries.orphans(),
    deliveries.pauses(),
    deliveries.destinations(),
  ])
  return { states, orphans, pauses, destinations: destinations.filter(isHeldBack) }
}

/** `3 waiting, 1 running`. */
export function describeStates(states: DeliveryStatus['states']): string {
  const present = Object.entries(states).filter(([, count]) => count > 0)
  return present.length === 0 ? 'none to do' : present.map(([state, count]) => `${count} ${state}`).join(', ')
}

export function printDeliveryTrouble({ orphans, pauses, destinations }: DeliveryStatus, output: Output): void {
  const { bold } = output.colors
  if (orphans.length > 0) {
    output.data(`\n${bold('Deliveries that no process works on')}`)
    output.table(
      [
        { title: 'kind' },
        { title: 'name', min: 10 },
        { title: 'count', align: 'right' },
        { title: 'oldest', align: 'right' },
      ],
      orphans.map(({ kind, name, count, oldest }) => [kind, name, String(count), formatAge(oldest)]),
      '  ',
    )
  }
  if (pauses.length > 0) {
    output.data(`\n${bold('Paused deliveries')}`)
    output.table(
      [
        { title: 'kind' },
        { title: 'name', min: 10 },
        { title: 'for', align: 'right' },
        { title: 'by', min: 8 },
        { title: 'reason', min: 10 },
      ],
      pauses.map(({ kind, name, at, who, reason }) => [kind, name, formatAge(at), who, reason ?? '–']),
      '  ',
    )
  }
  if (destinations.length > 0) {
    output.data(`\n${bold('Destinations held back')}`)
    output.table(DESTINATION_COLUMNS, destinations.map(toDestinationRow), '  ')
  }
}

function formatAge(since: Date): string {
  return formatSpan((Date.now() - since.getTime()) / 1_000)
}
