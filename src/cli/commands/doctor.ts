import type { Command } from 'commander'
import type { Finding, FindingLevel } from '../../index.ts'
import { printable } from '../../printable.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Invocation, runCommand } from '../invocation.ts'
import { loadRulesIfPossible } from '../observer-file.ts'
import type { Output } from '../output.ts'
import { wrap } from '../wrap.ts'

interface Options {
  readonly strict?: boolean
}

export function define(command: Command): void {
  command
    .option('--strict', 'exit with 1 for warnings too')
    .addHelpText(
      'after',
      `
Levels:
  problem   it does not work now; exit code 1
  warning   it works, and a promise is weaker than it could be
  note      worth knowing
  ok        looked at, and well (left out with --quiet)`,
    )
    .action(() => runCommand<Options>(command, doctor))
}

async function doctor({ configuration, open, options, output }: Invocation<Options>): Promise<ExitCode> {
  const { file } = await configuration()
  const ac = await open()
  // For the services that the file names: they are asked whether they are there, and nothing is sent.
  await loadRulesIfPossible(ac, file, undefined, output)
  const findings = await ac.doctor()
  const count = (level: FindingLevel) => findings.filter((finding) => finding.level === level).length
  const [problems, warnings, notes, well] = [count('problem'), count('warning'), count('note'), count('ok')]
  if (output.json) output.document({ problems, warnings, notes, ok: well, findings })
  else {
    for (const finding of findings) if (finding.level !== 'ok' || !output.quiet) printFinding(finding, output)
    output.talk(
      `\n${plural(problems, 'problem')}, ${plural(warnings, 'warning')}, ${plural(notes, 'note')}, ${well} ok`,
    )
  }
  return problems > 0 || (options.strict && warnings > 0) ? EXIT.failure : EXIT.ok
}

const CHECK_WIDTH = 22
const LEVEL_WIDTH = 9

/** The level is a word, so that it can be read without colour. */
function printFinding({ level, check, message, fix }: Finding, { colors, data, width }: Output): void {
  const paint = { ok: colors.green, note: colors.cyan, warning: colors.yellow, problem: colors.red }[level]
  const indent = ' '.repeat(LEVEL_WIDTH + CHECK_WIDTH)
  const [first = '', ...rest] = wrap(printable(message), width - indent.length)
  data(`${paint(level.padEnd(LEVEL_WIDTH))}${check.padEnd(CHECK_WIDTH)}${first}`)
  for (const line of rest) data(indent + line)
  // Not wrapped: it is there to be copied.
  if (fix !== null) data(`${indent}${colors.dim('→')} ${colors.bold(printable(fix))}`)
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
