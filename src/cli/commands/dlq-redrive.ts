import type { Command } from 'commander'
import { runCommand } from '../invocation.ts'
import { addFilterOptions, collectLetterIds } from '../letter-filter.ts'
import { type Marking, type MarkOptions, markLetters } from '../mark-letters.ts'
import { addOperatorOptions } from '../operator.ts'

const REDRIVE: Marking = {
  verb: 'redrive',
  question: (letters) => `Redrive ${letters}?`,
  done: (letters) => `Marked ${letters}: the owner runs what is marked, then what waits behind it, in order.`,
}

export function define(command: Command): void {
  addOperatorOptions(addFilterOptions(command))
    .argument('[id...]', 'ids of dead letters', collectLetterIds)
    .option('--all-matching', 'every dead letter that the filters leave')
    .option('--dry-run', 'show which ones, and do nothing')
    .addHelpText(
      'after',
      `
Marks them; their owner runs them under its lease, and then what waits behind them. Letters in any other state than dead
are left alone, so that two people who redrive the same letter redrive it once.`,
    )
    .action((ids: bigint[]) => runCommand<MarkOptions>(command, (invocation) => markLetters(ids, REDRIVE, invocation)))
}
