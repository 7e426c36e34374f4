/**
 * Calls that arrive and cannot be abused: which addresses may be called (guard.ts), how a name becomes a connection
 * (resolve.ts, dial.ts), and one request under limits (send.ts, exchange.ts). Knows nothing of observers.
 */
export { RefusedAddress } from './dial.ts'
export { type Answer, CallFailed } from './exchange.ts'
export { createGate, type Gate } from './gate.ts'
export { judgeAddress, judgeUrl, type NetworkRules, parseRules, type Refusal } from './guard.ts'
export { headerNameProblem, headerValueProblem } from './headers.ts'
export { isLocalFault, NAME_SERVER_AWAY } from './local-fault.ts'
export { onAbort, untilAborted } from './on-abort.ts'
export type { ResolverOptions } from './resolve.ts'
export { parseRetryAfter } from './retry-after.ts'
export {
  createHttp,
  type Http,
  type HttpLimits,
  type HttpOptions,
  type HttpRequest,
  type Target,
  toTarget,
} from './send.ts'
