/**
 * `aftercommit/client`: follows a live feed from a browser. It promises that every event is given once and in order, over
 * lost connections, sleep and reloads, and that whatever makes that impossible is told by `onResync`. It relies on `fetch`
 * with streams and on nothing else: no Node, no dependency.
 *
 * Start with connect.ts (the states), then progress.ts (the token) and event-stream.ts (the format).
 */
export { connect } from './connect.ts'
export {
  type Catalogue,
  type Connection,
  type ConnectionState,
  type ConnectOptions,
  type EventIn,
  FeedRefusedError,
  type HeaderValues,
  type LiveEvent,
} from './options.ts'
export type { TokenStorage } from './progress.ts'
