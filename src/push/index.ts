/**
 * Push subscriptions: browsers that users let us push to, kept until their push service says that they are gone. What a
 * browser sends is checked here before it is kept; sending is done by the push action of observers, which reads the
 * recipients here and keeps here which of them have a message already.
 *
 * Start with push.ts, then statements.ts.
 */
export { createPush, type Push, type PushDevice, type PushPart } from './push.ts'
export {
  deleteGone,
  deleteProgress,
  insertProgress,
  type Recipient,
  type ServiceRow,
  selectRecipients,
  selectServices,
} from './statements.ts'
export type { PushSubscriptionInput } from './subscription.ts'
