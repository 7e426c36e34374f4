/**
 * What `deliveries pause` and `resume` are about: a name, whose kind need not be said when there is only one, or a
 * destination, which the library knows.
 */
import { type Command, Option } from 'commander'
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'
import type { Aftercommit, DeliveryKind, PauseTarget, WorkName } from '../index.ts'
import { KINDS } from './delivery-filter.ts'
import { UsageError } from './failure.ts'

export interface TargetOptions {
  readonly kind?: DeliveryKind
  readonly destination?: string
}

export function addTarget(command: Command): Command {
  return command
    .argument('[name]', 'what a process has registered to do')
    .addOption(new Option('--kind <kind>', 'of this kind; needed where two have the name').choices(KINDS))
    .addOption(
      new Option(
        '--destination <destination>',
        'instead of a name: whatever goes there; an origin for all at it',
      ).conflicts('kind'),
    )
}

export async function findTarget(
  ac: Aftercommit,
  name: string | undefined,
  { kind, destination }: TargetOptions,
): Promise<PauseTarget> {
  if ((name === undefined) === (destination === undefined)) {
    throw new UsageError('Give the name of work, or --destination; nothing was done.')
  }
  if (destination !== undefined) return { destination }
  const names = await ac.deliveries.names()
  const found = names.filter((one) => one.name === name && (kind === undefined || one.kind === kind))
  if (found.length > 1) {
    const kinds = found.map((one) => one.kind).join(', ')
    throw new UsageError(
      `${JSON.stringify(name)} is the name of several kinds (${kinds}), so nothing was done. Add --kind.`,
    )
  }
  if (found[0] === undefined) {
    const what = kind === undefined ? 'Nothing' : `No ${kind}`
    throw new AftercommitError(
      'UNKNOWN_DELIVERY',
      `${what} is called ${JSON.stringify(name)} in this database, so nothing was done.${nearestName(name!, names)}`,
    )
  }
  return { kind: found[0].kind, name: found[0].name }
}

export function nearestName(name: string, names: readonly WorkName[]): string {
  const near = closest(
    name,
    names.map((one) => one.name),
  )
  return near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
}

/** `effect mail`, or destinations. */
export function describeTargets(targets: readonly PauseTarget[]): string {
  return targets.map((one) => ('destination' in one ? one.destination : `${one.kind} ${one.name}`)).join(', ')
}
