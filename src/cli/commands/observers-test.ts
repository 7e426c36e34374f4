import { type Command, InvalidArgumentError, Option } from 'commander'
import { toCount, toTime } from '../arguments.ts'
import { printBacktest, toBacktestJson } from '../backtest-format.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { IMPORT_FLAGS, IMPORT_HELP, loadRules, requireFile } from '../observer-file.ts'
import { createProgress, describeBar } from '../progress.ts'

interface Options {
  readonly since: Date
  readonly until?: Date
  readonly samples: number
  readonly limit?: number
  readonly import?: string
}

export function define(command: Command): void {
  command
    .argument('[name...]', 'observers to try; all that are enabled unless told')
    .addOption(
      new Option('--since <time>', 'events recorded since: 7d, or a time').argParser(toTime).makeOptionMandatory(),
    )
    .addOption(new Option('--until <time>', 'events recorded before: 1d, or a time').argParser(toTime))
    .addOption(new Option('--samples <number>', 'examples of each observer').argParser(toSamples).default(3))
    .addOption(new Option('--limit <number>', 'at most this many events').argParser(toCount(1_000_000_000)))
    .addOption(new Option(IMPORT_FLAGS, IMPORT_HELP))
    .addHelpText(
      'after',
      `
Asks the rules of the file about events that happened, and shows what they would have done. Nothing is sent, no handler
is called, nothing is written. Examples show what is rendered from payloads.

Exits with 1 when a condition or a template failed for some event, so that a pipeline can refuse the change.`,
    )
    .action((names: string[]) => runCommand<Options>(command, (invocation) => test(names, invocation)))
}

async function test(names: readonly string[], invocation: Invocation<Options>): Promise<ExitCode> {
  const { configuration, open, options, output, signal } = invocation
  const { since, until, samples, limit } = options
  const file = requireFile((await configuration()).file)
  const ac = await open()
  await loadRules(ac, file, options.import)
  const progress = createProgress({ stream: process.stderr, quiet: output.quiet, describe: describeBar })
  const report = await ac.observers
    .test({
      since,
      until,
      samples,
      limit,
      observers: names.length === 0 ? undefined : names,
      onProgress: progress.at,
      signal,
    })
    .finally(progress.end)
  if (output.json) output.document(toBacktestJson(report))
  else printBacktest(report, output)
  return report.ok ? EXIT.ok : EXIT.failure
}

function toSamples(text: string): number {
  const count = Number(text)
  if (/^\d{1,3}$/.test(text) && count <= 100) return count
  throw new InvalidArgumentError('Give a whole number from 0 to 100.')
}
