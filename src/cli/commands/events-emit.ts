import { text } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import { parseJson } from '../../index.ts'
import { printable } from '../../printable.ts'
import { toAggregate, toTime, toVersion } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

interface Options {
  readonly aggregate?: { type: string; id: string }
  readonly payload: string
  readonly id?: string
  readonly tenant?: string
  readonly correlation?: string
  readonly causation?: string
  readonly user?: string
  readonly occurredAt?: Date
  readonly expectedVersion?: number
}

export function define(command: Command): void {
  command
    .argument('<type>', 'what happened, like order.placed')
    .addOption(new Option('--aggregate <type/id>', 'what it happened to, like order/42').argParser(toAggregate))
    .option('--payload <json>', 'JSON, or - to read it from standard input', '{}')
    .option('--id <id>', 'an id of your own: emitting it again changes nothing')
    .option('--tenant <tenant>', 'on whose behalf')
    .option('--correlation <id>', 'the request or job this belongs to')
    .option('--causation <id>', 'the event that led to this one')
    .option('--user <id>', 'who did it')
    .addOption(new Option('--occurred-at <time>', 'when it happened, if not now').argParser(toTime))
    .addOption(new Option('--expected-version <number>', 'the version its stream must be at').argParser(toVersion))
    .action((type: string) => runCommand<Options>(command, (invocation) => emit(type, invocation)))
}

async function emit(type: string, { open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { aggregate, id, tenant, occurredAt, expectedVersion, correlation, causation, user } = options
  const payload = parseJson(options.payload === '-' ? await text(process.stdin) : options.payload)
  const metadata = { correlationId: correlation, causationId: causation, userId: user }
  const ac = await open()
  const emitted = await ac.transaction((tx) =>
    tx.emit(type, { aggregate, payload, id, tenant, occurredAt, expectedVersion, metadata }),
  )
  if (output.json) output.document(toPlain(emitted))
  else output.data(`${type} ${printable(emitted.id)} at position ${emitted.position}`)
  return EXIT.ok
}
