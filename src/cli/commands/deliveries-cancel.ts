import type { Command } from 'commander'
import { type Change, type ChangeOptions, changeDeliveries } from '../change-deliveries.ts'
import { addDeliveryFilter, collectDeliveryIds } from '../delivery-filter.ts'
import { runCommand } from '../invocation.ts'
import { addWho } from '../operator.ts'

const CANCEL: Change = {
  verb: 'cancel',
  question: (deliveries) => `Cancel ${deliveries}? They will not be done, and this cannot be undone.`,
  done: (deliveries) => `Cancelled ${deliveries}.`,
  only: {},
  refuses: () => undefined,
}

export function define(command: Command): void {
  addWho(addDeliveryFilter(command))
    .argument('[id...]', 'ids of deliveries', collectDeliveryIds)
    .requiredOption('--reason <text>', 'why, kept in the audit')
    .option('--all-matching', 'every delivery that the filters leave')
    .option('--dry-run', 'show which ones, and do nothing')
    .addHelpText(
      'after',
      `
They are not done and leave no dead letter. One that is running is told so by its signal, and what it does afterwards
changes nothing here; what it has done already stays done. A workflow hears through onDeadLetter that its effect was
cancelled; an observer is not told.`,
    )
    .action((ids: bigint[]) =>
      runCommand<ChangeOptions>(command, (invocation) => changeDeliveries(ids, CANCEL, invocation)),
    )
}
