import { hostname, userInfo } from 'node:os'
import { type Command, Option } from 'commander'
import { toPlain } from '../../events/index.ts'
import type { Holder, UnblockTarget } from '../../index.ts'
import { toDuration, toPid } from '../arguments.ts'
import { confirm } from '../confirm.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { HOLDER_COLUMNS, toHolderRow } from '../holder-table.ts'
import { type Invocation, runCommand } from '../invocation.ts'

interface Options {
  readonly pid?: number
  readonly gid?: string
  readonly olderThan: number
  readonly reason?: string
}

const PATIENCE_MS = 10_000

export function define(command: Command): void {
  command
    .addOption(new Option('--pid <number>', 'end this session').argParser(toPid).conflicts('gid'))
    .addOption(new Option('--gid <name>', 'roll back this prepared transaction'))
    .addOption(
      new Option('--older-than <duration>', 'without --pid and --gid: leave younger transactions alone')
        .argParser(toDuration)
        .default(PATIENCE_MS, '10s'),
    )
    .option('--reason <text>', 'kept in the audit')
    .addHelpText(
      'after',
      `
Shows what holds the frontier back and, once confirmed, ends that session or rolls back that prepared transaction, the
oldest unless told. What it had not committed is lost to its owner; readers then go on. No position is ever skipped.

Needs the right pg_signal_backend for other roles' sessions; a prepared transaction is rolled back by the role that
prepared it or by a superuser. Every act is written to the audit.`,
    )
    .action(() => runCommand<Options>(command, unblock))
}

async function unblock(invocation: Invocation<Options>): Promise<ExitCode> {
  const { options, output } = invocation
  const ac = await invocation.open()
  const { holders } = await ac.log.status()
  const target = chooseTarget(holders, options)
  if (!output.json && holders.length > 0) output.table(HOLDER_COLUMNS, holders.map(toHolderRow))
  if (target === undefined) {
    if (output.json) output.document({ ended: null })
    else
      output.data(
        holders.length === 0 ? 'Nothing holds the frontier back.' : 'All of them are young; nothing was ended.',
      )
    return EXIT.ok
  }
  const name = 'pid' in target ? `session ${target.pid}` : `prepared transaction ${target.gid}`
  if (!(await confirm(invocation, `End ${name}? What it has not committed is lost.`))) {
    output.talk('Nothing was ended.')
    return EXIT.failure
  }
  const who = `${userInfo().username}@${hostname()}`
  const ended = await ac.log.unblock(target, { who, reason: options.reason })
  if (output.json) output.document({ ended: toPlain(ended) })
  else output.data(`Ended ${name}.`)
  return EXIT.ok
}

/** What was asked for, else the oldest that is old enough. A transaction of unknown age is not chosen by itself. */
export function chooseTarget(holders: readonly Holder[], options: Options): UnblockTarget | undefined {
  if (options.pid !== undefined) return { pid: options.pid }
  if (options.gid !== undefined) return { gid: options.gid }
  const oldest = holders.find(({ ageSeconds }) => ageSeconds !== null && ageSeconds * 1_000 >= options.olderThan)
  if (oldest === undefined) return undefined
  return oldest.preparedGid === null ? { pid: oldest.pid! } : { gid: oldest.preparedGid }
}
