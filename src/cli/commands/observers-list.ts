import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { ObserverStatus } from '../../observers/index.ts'
import { printable } from '../../printable.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { IMPORT_FLAGS, IMPORT_HELP, loadRulesIfPossible } from '../observer-file.ts'
import type { Output } from '../output.ts'
import type { Column } from '../table.ts'

interface Options {
  readonly import?: string
}

export function define(command: Command): void {
  command
    .addOption(new Option(IMPORT_FLAGS, IMPORT_HELP))
    .addHelpText(
      'after',
      `
Lists the rules of the file, and those that other processes have put in force.

Columns:
  source   the file, or elsewhere: a program added it
  state    on: some process has put it in force. off: enabled = false. new: no process has started it yet.
           paused: one of its actions is, by a person or because its receiver answered 410
  ok, part, failed   runs of the last 24 hours in which all, some or none of the actions succeeded
  dead     dead letters that nobody has dealt with`,
    )
    .action(() => runCommand<Options>(command, list))
}

async function list({ configuration, open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { file } = await configuration()
  const ac = await open()
  await loadRulesIfPossible(ac, file, options.import, output)
  const found = await ac.observers.status()
  if (output.json) output.document(found.map(toPlain))
  else if (found.length === 0) output.talk('No observers.')
  else printList(found, output)
  return EXIT.ok
}

const COLUMNS: readonly Column[] = [
  { title: 'name', min: 8 },
  { title: 'source' },
  { title: 'state' },
  { title: 'on', min: 8 },
  { title: 'condition', min: 10 },
  { title: 'actions', min: 8 },
  { title: 'ok', align: 'right' },
  { title: 'part', align: 'right' },
  { title: 'failed', align: 'right' },
  { title: 'dead', align: 'right' },
]

function printList(found: readonly ObserverStatus[], output: Output): void {
  output.table(COLUMNS, found.map(toRow))
  const paused = found.flatMap(({ name, actions }) =>
    actions.flatMap((action) => (action.pause === null ? [] : [{ owner: `${name}/${action.name}`, ...action.pause }])),
  )
  if (paused.length > 0) output.talk('')
  for (const { owner, who, reason } of paused) {
    const why = reason === null ? '' : `: ${reason}`
    output.talk(printable(`${owner} is paused by ${who}${why}. Go on with: aftercommit deliveries resume ${owner}`))
  }
}

function toRow(one: ObserverStatus): string[] {
  const { success, partial, failure } = one.runs
  const dead = one.actions.reduce((sum, action) => sum + action.dead, 0)
  return [
    one.name,
    one.source,
    stateOf(one),
    one.entity === null ? one.on.join(', ') : `${one.on.join(', ')} of ${one.entity}`,
    one.condition ?? '–',
    one.actions.map(({ name }) => name).join(', '),
    ...[success, partial, failure, dead].map(String),
  ]
}

function stateOf({ enabled, isInForce, actions }: ObserverStatus): string {
  if (!enabled) return 'off'
  if (!isInForce) return 'new'
  return actions.some(({ pause }) => pause !== null) ? 'paused' : 'on'
}
