import { type Command, Option } from 'commander'
import { collect, toCount } from '../arguments.ts'
import { printCheck, toCheckJson } from '../check-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { UsageError } from '../failure.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { importWorkflows, WORKFLOWS_FLAGS, WORKFLOWS_HELP } from '../workflow-module.ts'

interface Options {
  readonly import: string
  readonly type?: string[]
  readonly limit?: number
  readonly payload?: boolean
}

export function define(command: Command): void {
  command
    .addOption(new Option(WORKFLOWS_FLAGS, WORKFLOWS_HELP).makeOptionMandatory())
    .addOption(new Option('--type <type...>', 'only these workflows').argParser(collect))
    .addOption(new Option('--limit <number>', 'at most this many instances of each').argParser(toCount(1_000_000_000)))
    .option('--payload', 'print the values that differ too')
    .addHelpText(
      'after',
      `
Replays stored histories through the code of the module, before it is deployed: can every event be read, does the last
state agree about the end, are snapshots what a replay gives, would recorded inputs be decided the same way. Writes
nothing. Exits with 1 when it finds something, and says which events and which fields differ.

Columns:
  decisions       recorded inputs that were decided again; only workflows with \`observe\` record them
  redacted        recorded inputs that say nothing because they were redacted
  from snapshot   instances that were replayed from a snapshot on: retention has removed their first events
  not checkable   instances that are over, and have neither their first events nor a snapshot; no failure`,
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
  const report = await ac.workflows.check({ limit, values: options.payload, ...(types && { types }) })
  if (output.json) output.document(toCheckJson(report))
  else printCheck(report, output)
  return report.findings.length === 0 ? EXIT.ok : EXIT.failure
}
