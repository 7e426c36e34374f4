/** A receipt as JSON, the same for the CLI and over HTTP: our own keys in snake_case, positions and ids as text. */
import { toEventJson, toPlain } from '../events/index.ts'
import type { Receipt } from './receipt.ts'

export interface ReceiptJsonOptions {
  /** Show the user of the event. Default: false. */
  readonly reveal?: boolean
}

export function toReceiptJson(receipt: Receipt, { reveal = false }: ReceiptJsonOptions = {}): Record<string, unknown> {
  const { event, observers, ...rest } = receipt
  const plain = toPlain(withoutMethods(rest)) as Record<string, unknown>
  return { event: toEventJson(event, { reveal }), ...plain, observers: observers.map(toObserverJson) }
}

/** Values of the payload and of requests keep their own keys. */
function toObserverJson({ parts, actions, ...observer }: Receipt['observers'][number]): object {
  return {
    ...(toPlain(observer) as object),
    parts,
    actions: actions.map(({ history, ...action }) => ({
      ...(toPlain(action) as object),
      history: history.map(({ request, response, ...attempt }) => ({
        ...(toPlain(attempt) as object),
        request,
        response,
      })),
    })),
  }
}

function withoutMethods(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => typeof item !== 'function'))
}
