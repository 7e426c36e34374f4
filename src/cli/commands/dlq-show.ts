import type { Command } from 'commander'
import type { DeadLetter } from '../../dead-letters/index.ts'
import { AftercommitError } from '../../errors.ts'
import { toEventJson } from '../../events/index.ts'
import { formatAggregate, formatTime } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { printFields, printJson } from '../fields.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { toLetterId } from '../letter-filter.ts'
import { toFullLetter } from '../letter-format.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'

interface Options {
  readonly reveal?: boolean
}

export function define(command: Command): void {
  command
    .argument('<id>', 'the id of a dead letter', toLetterId)
    .option('--reveal', 'print the user id too')
    .action((id: bigint) => runCommand<Options>(command, (invocation) => show(id, invocation)))
}

async function show(id: bigint, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const letter = await (await open()).deadLetters.show(id)
  if (letter === undefined) {
    throw new AftercommitError(
      'UNKNOWN_LETTER',
      `There is no dead letter ${id}: it never existed, or its subscription was removed. See: aftercommit dlq list`,
    )
  }
  const { reveal = false } = options
  if (output.json) output.document(toFullLetter(letter, { reveal }))
  else printLetter(letter, toEventJson(letter.event, { reveal }), output)
  return EXIT.ok
}

function printLetter(letter: DeadLetter, full: Record<string, unknown>, output: Output): void {
  const { colors, data } = output
  const { error, waiting } = letter
  data(colors.bold(`Dead letter ${letter.id}`))
  printFields(
    [
      ['status', letter.status],
      ['who', letter.who],
      ['reason', letter.reason],
      ['owner', `${letter.owner}, ${letter.kind}`],
      ['key', letter.key],
      ['attempts', String(letter.attempts)],
      ['first', `${formatTime(letter.firstAttemptAt)} UTC`],
      ['last', `${formatTime(letter.lastAttemptAt)} UTC`],
      ['waiting', waiting === 0 ? 'none' : `${plural(waiting, 'event')} of the same key`],
    ],
    output,
  )
  data(`\n${colors.bold('error')}`)
  printFields(
    [
      ['name', error.name],
      ['code', error.code ?? null],
      ['message', error.message],
    ],
    output,
  )
  for (const line of error.stack?.split('\n').slice(1) ?? []) printFields([['', line.trim()]], output)
  printEvent(letter, full, output)
  if (letter.status === 'dead') output.talk(`\nTo try it again: aftercommit dlq redrive ${letter.id}`)
}

function printEvent({ event }: DeadLetter, full: Record<string, unknown>, output: Output): void {
  const { user_id: user = null } = full.metadata as { user_id?: string | null }
  output.data(`\n${output.colors.bold('event')}`)
  printFields(
    [
      ['type', event.type],
      ['id', event.id],
      ['position', String(event.position)],
      ['aggregate', event.aggregateType === null ? null : formatAggregate(event)],
      ['tenant', event.tenant],
      ['recorded', `${formatTime(event.recordedAt)} UTC`],
      ['correlation', event.metadata.correlationId],
      ['causation', event.metadata.causationId],
      ['user', user],
    ],
    output,
  )
  for (const part of ['payload', 'changes', 'previous']) {
    if (full[part] !== null) printJson(part, full[part], output)
  }
}
