/** Which dead letters are meant: the options that `dlq` verbs share. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LetterFilter, LetterKind, LetterStatus } from '../dead-letters/index.ts'

export interface FilterOptions {
  readonly owner?: string
  readonly kind?: LetterKind
  readonly key?: string
  readonly error?: string
  readonly event?: string
  readonly pending?: boolean
}

export interface PageOptions extends FilterOptions {
  readonly status?: LetterStatus
  readonly before?: bigint
}

const KINDS: readonly LetterKind[] = ['subscription', 'action', 'effect', 'timer']
const STATUSES: readonly LetterStatus[] = ['dead', 'redriving', 'resolved', 'discarded']
const PENDING_MS = 5 * 60_000

export function addFilterOptions(command: Command): Command {
  return command
    .option('--owner <id>', 'only those of this subscription')
    .addOption(new Option('--kind <kind>', 'only this kind').choices(KINDS))
    .option('--key <key>', 'only this key, like order/42')
    .option('--error <text>', 'only with this in the name, code or message of the error')
    .option('--event <id>', 'only of this event')
    .option('--pending', 'only dead ones that nobody has touched for 5 minutes')
}

export function addPageOptions(command: Command): Command {
  return addFilterOptions(command)
    .addOption(new Option('--status <status>', 'only in this state').choices(STATUSES))
    .addOption(new Option('--before <id>', 'only older ones than this letter').argParser(toLetterId))
}

export function toFilter({ owner, kind, key, error, event, pending, status, before }: PageOptions): LetterFilter {
  return {
    owner,
    kind,
    key,
    error,
    eventId: event,
    before,
    status: status ?? (pending ? 'dead' : undefined),
    untouchedMs: pending ? PENDING_MS : undefined,
  }
}

export function isFiltered({ owner, kind, key, error, event, pending }: FilterOptions): boolean {
  return [owner, kind, key, error, event, pending].some((value) => value !== undefined)
}

export function toLetterId(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('Give the id of a dead letter, a whole number.')
}

export function collectLetterIds(text: string, before: readonly bigint[] | undefined): bigint[] {
  return [...new Set([...(before ?? []), ...text.split(',').map(toLetterId)])]
}
