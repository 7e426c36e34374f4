import { type Command, Option } from 'commander'
import type { CheckReport } from '../../index.ts'
import { collect, toCount } from '../arguments.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { UsageError } from '../failure.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { toPlain } from '../json.ts'
import type { Output } from '../output.ts'
import { plural } from '../plural.ts'
import { printable } from '../table.ts'
import { importWorkflows, WORKFLOWS_FLAGS, WORKFLOWS_HELP } from '../workflow-module.ts'

interface Options {
  readonly import: string
  readonly type?: string[]
  readonly limit?: number
}

export function define(command: Command): void {
  command
    .addOption(new Option(WORKFLOWS_FLAGS, WORKFLOWS_HELP).makeOptionMandatory())
    .addOption(new Option('--type <type...>', 'only these workflows').argParser(collect))
    .addOption(new Option('--limit <number>', 'at most this many instances of each').argParser(toCount(1_000_000_000)))
    .addHelpText(
      'after',
      `
Replays stored histories through the code of the module, before it is deployed: can every event be read, does the last
state agree about the end, are snapshots what a replay gives, would recorded inputs be decided the same way. Writes
nothing. Exits with 1 when it finds something.

Columns:
  decisions   recorded inputs that were decided again; only workflows with \`observe\` record them
  redacted    recorded inputs that say nothing because they were redacted`,
    )
    .action(() => runCommand<Options>(command, check))
}

async function check({ open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const ac = await open()
  const { types: registered } = await importWorkflows(options.import, ac)
  if (registered.length === 0) {
    throw new UsageError(`${options.import} registers no workflow. Write: ac.workflows.register(workflow)`)
  }
  const { type: types, limit } = options
  const report = await ac.workflows.check({ limit, ...(types && { types }) })
  if (output.json) output.document(toPlain(report))
  else print(report, output)
  return report.findings.length === 0 ? EXIT.ok : EXIT.failure
}

function print({ types, findings }: CheckReport, output: Output): void {
  output.table(
    [
      { title: 'workflow', min: 8 },
      ...['instances', 'events', 'snapshots', 'decisions', 'redacted'].map((title) => ({
        title,
        align: 'right' as const,
      })),
    ],
    types.map(({ type, instances, events, snapshots, decisions, redacted }) => [
      type,
      ...[instances, events, snapshots, decisions, redacted].map(String),
    ]),
  )
  if (findings.length > 0) output.data('')
  for (const { type, id, version, about, message } of findings) {
    output.data(printable(`${output.colors.red(about)}  ${type}/${id} at event ${version}: ${message}`))
  }
  output.talk(`\n${findings.length === 0 ? 'Nothing was found.' : `${plural(findings.length, 'finding')}.`}`)
}
