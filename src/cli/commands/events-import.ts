import { type Command, Option } from 'commander'
import type { ImportedPart } from '../../index.ts'
import { toCount } from '../arguments.ts'
import { confirm } from '../confirm.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { UsageError } from '../failure.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { plural } from '../plural.ts'

interface Options {
  readonly from: string
  readonly orderBy: string
  readonly column?: string[]
  readonly batch?: number
}

export function define(command: Command): void {
  command
    .requiredOption('--from <table>', 'the table of events')
    .requiredOption('--order-by <columns>', 'the order of its rows, its key among them: created_at,id')
    .option(
      '--column <part=column...>',
      'which column holds a part: type=event_type payload=data occurred_at=created_at',
    )
    .addOption(new Option('--batch <rows>', 'rows in one transaction; 1000 by default').argParser(toCount(100_000)))
    .addHelpText(
      'after',
      `
Appends each row as an event, in the order given, with the id import:<table>:<key>. Parts are type, payload, aggregate_type,
aggregate_id, tenant, changes, previous, metadata and occurred_at; a column of the same name is found by itself. A run that
ended early goes on where it was, and rows that were imported before append nothing. Subscriptions that run handle imported
events like new ones: the command names them and asks first.`,
    )
    .action(() => runCommand<Options>(command, importTable))
}

async function importTable(invocation: Invocation<Options>): Promise<ExitCode> {
  const { open, options, output, signal } = invocation
  const columns = Object.fromEntries((options.column ?? []).map(toPart))
  const ac = await open()
  const running = (await ac.subscriptions.list()).map(({ id }) => id)
  if (running.length > 0) {
    output.talk(`These subscriptions handle what is imported where it matches: ${running.join(', ')}.`)
    if (!(await confirm(invocation, `Import ${options.from}?`))) return EXIT.ok
  }
  const { rows } = await ac.capture.importEvents(options.from, {
    orderBy: options.orderBy.split(',').map((name) => name.trim()),
    columns,
    batch: options.batch,
    signal,
    onProgress: (done) => output.talk(`${plural(done, 'row')} …`),
  })
  if (output.json) output.document({ rows })
  else output.data(`${plural(rows, 'row')} became events.`)
  return EXIT.ok
}

const PARTS: Readonly<Record<string, ImportedPart>> = {
  type: 'type',
  payload: 'payload',
  aggregate_type: 'aggregateType',
  aggregate_id: 'aggregateId',
  tenant: 'tenant',
  changes: 'changes',
  previous: 'previous',
  metadata: 'metadata',
  occurred_at: 'occurredAt',
}

function toPart(text: string): [ImportedPart, string] {
  const [name = '', column = ''] = text.split('=')
  const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined
  if (part !== undefined && column !== '') return [part, column]
  throw new UsageError(`--column takes part=column, with a part of: ${Object.keys(PARTS).join(', ')}.`)
}
