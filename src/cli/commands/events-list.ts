import { type Command, Option } from 'commander'
import { collect, toAggregate, toCount, toTime } from '../arguments.ts'
import { EVENT_COLUMNS, formatPayload, toBrief, toRow } from '../event-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'

interface Options {
  readonly limit: number
  readonly on?: string[]
  readonly aggregate?: { type: string; id: string }
  readonly since?: Date
  readonly correlation?: string
  readonly tenant?: string
  readonly payload?: boolean
}

export function define(command: Command): void {
  command
    .addOption(new Option('--limit <number>', 'at most this many').argParser(toCount(10_000)).default(20))
    .addOption(new Option('--on <pattern...>', 'only these types, like order.*').argParser(collect))
    .addOption(new Option('--aggregate <type/id>', 'only this aggregate, like order/42').argParser(toAggregate))
    .addOption(new Option('--since <time>', 'only what was recorded since: 2h, or a time').argParser(toTime))
    .option('--correlation <id>', 'only what belongs to this request or job')
    .option('--tenant <tenant>', 'only events of this tenant')
    .option('--payload', 'print payloads too')
    .action(() => runCommand<Options>(command, list))
}

async function list({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { on, aggregate, since, tenant, limit, correlation, payload = false } = options
  const ac = await open()
  const events = await ac.log.list({ on, aggregate, since, tenant, limit, correlationId: correlation })
  if (output.json) output.document(events.map((event) => toBrief(event, { payload })))
  else if (events.length === 0) output.talk('No events.')
  else {
    const columns = payload ? [...EVENT_COLUMNS, { title: 'payload', min: 10 }] : EVENT_COLUMNS
    output.table(
      columns,
      events.map((event) => (payload ? [...toRow(event), formatPayload(event)] : toRow(event))),
    )
  }
  return EXIT.ok
}
