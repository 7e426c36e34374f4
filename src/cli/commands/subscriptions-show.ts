import type { Command } from 'commander'
import type { AftercommitEvent } from '../../index.ts'
import { printable } from '../../printable.ts'
import { formatDuration } from '../../runtime/index.ts'
import { formatAggregate, formatTime, toBrief } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { printFields } from '../fields.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { findSubscription, formatOwner, type ShownSubscription, toSubscriptionJson } from '../subscription-format.ts'

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of a subscription')
    .action((id: string) => runCommand<object>(command, (invocation) => show(id, invocation)))
}

async function show(id: string, { open, output }: Invocation<object>): Promise<ExitCode> {
  const ac = await open()
  const found = await findSubscription(ac, id)
  const last = found.lastEventId === null ? undefined : await ac.log.get(found.lastEventId)
  if (output.json) output.document({ ...toSubscriptionJson(found), last_event: last ? toBrief(last) : null })
  else printSubscription(found, last, output)
  return EXIT.ok
}

function printSubscription(one: ShownSubscription, last: AftercommitEvent | undefined, output: Output): void {
  const { lag, lagSeconds, deadLetters, parked, parkedKeys } = one
  output.data(output.colors.bold(printable(one.id)))
  const fields: [string, string | null][] = [
    ['status', one.status],
    ['reason', one.reason],
    ['kind', one.kind],
    ['events', one.on.join(', ')],
    ['tenant', one.tenant],
    ['position', String(one.position)],
    ['lag', lag === 0n ? 'none' : `${plural(lag, 'position')}, the oldest for ${formatDuration(lagSeconds * 1_000)}`],
    ['last event', describeLast(one, last)],
    ['checkpoint', `written ${formatTime(one.updatedAt)} UTC`],
    ['owner', describeOwner(one)],
    ['term', String(one.term)],
    ['dead letters', String(deadLetters)],
    ['parked', parked === 0 ? 'none' : `${plural(parked, 'event')} of ${plural(parkedKeys, 'key')}`],
  ]
  printFields(fields, output)
  if (deadLetters > 0) output.talk(`\nIts dead letters: aftercommit dlq list --owner ${printable(one.id)}`)
}

function describeLast({ lastEventId }: ShownSubscription, last: AftercommitEvent | undefined): string | null {
  if (last === undefined) return lastEventId
  const what = last.aggregateType === null ? last.type : `${last.type} of ${formatAggregate(last)}`
  return `${what}, ${last.id}`
}

function describeOwner(one: ShownSubscription): string {
  const { runBy } = one
  const name = formatOwner(one)
  if (name === null) return 'nobody'
  return runBy === undefined ? name : `${name}, running for ${formatDuration(runBy.startedSecondsAgo * 1_000)}`
}
