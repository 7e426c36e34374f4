/**
 * What comes back of text messages. Sending them is an action of observers; this is the other direction: a handler for
 * any server, which checks the signature of the SMS API and appends `sms.delivered` and `sms.failed` to the log.
 *
 * Start with status-callback.ts.
 */
import { AftercommitError } from '../errors.ts'
import {
  createStatusCallback,
  type FetchHandler,
  type StatusCallbackOptions,
  type StatusCallbackParts,
} from './status-callback.ts'

export { isMessageId } from './message-id.ts'
export type { FetchHandler, StatusCallbackOptions } from './status-callback.ts'

export interface Sms {
  /** For `status_callback` of sms actions: what the API tells becomes `sms.delivered` or `sms.failed`. */
  statusCallback(options: StatusCallbackOptions): FetchHandler
}

export function createSms(parts: StatusCallbackParts): Sms {
  return {
    statusCallback(options) {
      const { token, url } = options
      if (typeof token !== 'string' || token === '') throw bad('token', 'the token of your account')
      if (typeof url !== 'string' || !/^https?:\/\/[^\s?#]+$/.test(url))
        throw bad('url', 'the public address of this handler, without a query')
      return createStatusCallback(options, parts)
    },
  }
}

function bad(option: string, expected: string): AftercommitError {
  return new AftercommitError('BAD_OPTION', `${option} of statusCallback must be ${expected}, so no handler was made.`)
}
