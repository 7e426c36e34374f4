/** Which deliveries are meant: the options that `deliveries` verbs share. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DeliveryFilter, DeliveryKind, DeliveryState } from '../index.ts'

export interface DeliveryFilterOptions {
  readonly kind?: DeliveryKind
  readonly name?: string
  readonly owner?: string
  readonly destination?: string
  readonly state?: DeliveryState
}

export const KINDS: readonly DeliveryKind[] = ['action', 'effect', 'timer']
const STATES: readonly DeliveryState[] = ['waiting', 'running', 'scheduled', 'retrying', 'paused']

export function addDeliveryFilter(command: Command): Command {
  return command
    .addOption(new Option('--kind <kind>', 'only this kind').choices(KINDS))
    .option('--name <name>', 'only this name')
    .option('--owner <id>', 'only those of this observer or workflow')
    .option('--destination <destination>', 'only what goes there; an origin for all at it')
    .addOption(new Option('--state <state>', 'only in this state').choices(STATES))
}

export function toDeliveryFilter({ kind, name, owner, destination, state }: DeliveryFilterOptions): DeliveryFilter {
  return { kind, name, owner, destination, state }
}

export function isDeliveryFiltered(options: DeliveryFilterOptions): boolean {
  return Object.values(toDeliveryFilter(options)).some((value) => value !== undefined)
}

export function toDeliveryId(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('Give the id of a delivery, a whole number.')
}

export function collectDeliveryIds(text: string, before: readonly bigint[] | undefined): bigint[] {
  return [...new Set([...(before ?? []), ...text.split(',').map(toDeliveryId)])]
}
