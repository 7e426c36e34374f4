import type { Command } from 'commander'
import { type Change, type ChangeOptions, changeDeliveries } from '../change-deliveries.ts'
import { addDeliveryFilter, collectDeliveryIds } from '../delivery-filter.ts'
import { runCommand } from '../invocation.ts'
import { addOperatorOptions } from '../operator.ts'

const RETRY: Change = {
  verb: 'retry',
  question: (deliveries) => `Retry ${deliveries}?`,
  done: (deliveries) => `Due now: ${deliveries}.`,
  only: { later: true },
  refuses: ({ id, state, runAt }) => {
    if (state === 'running') return `Delivery ${id} is running, so it is left alone.`
    if (runAt.getTime() <= Date.now()) return `Delivery ${id} is due already, so there is nothing to change.`
    return undefined
  },
}

export function define(command: Command): void {
  addOperatorOptions(addDeliveryFilter(command))
    .argument('[id...]', 'ids of deliveries', collectDeliveryIds)
    .option('--all-matching', 'every delivery that the filters leave')
    .option('--dry-run', 'show which ones, and do nothing')
    .addHelpText(
      'after',
      `
Makes due now what waits for its time or for its next attempt. What is running or due already is left alone; so are
limits, pauses and open circuits.`,
    )
    .action((ids: bigint[]) =>
      runCommand<ChangeOptions>(command, (invocation) => changeDeliveries(ids, RETRY, invocation)),
    )
}
