/**
 * The receipt of an event: everything that followed it, in which state, why the rest waits and which command moves it.
 * A receipt holds only facts of the database, so every process, the CLI and HTTP answer the same. Plain subscriptions leave
 * no record of an event: their part follows from the checkpoint and is marked as derived.
 *
 * Start with receipt.ts (the words), then read-receipt.ts (how one is put together).
 */
export type {
  ActionPart,
  CausedEvent,
  ObserverPart,
  OpenItem,
  Reaction,
  ReactionState,
  Receipt,
  ReceiptAttempt,
  ReceiptCounts,
  SubscriptionPart,
  WorkPart,
} from './receipt.ts'
export { createReceipts, type ReceiptHandle, type Receipts, type Settlement, type SettleOptions } from './receipts.ts'
export type { Mark } from './strips.ts'
export { toReceiptJson } from './to-json.ts'
