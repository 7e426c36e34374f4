/**
 * The three ways in which CloudEvents travel over HTTP: one event as JSON (structured), several (batch), or the
 * attributes in `ce-` headers and the data as the body (binary). What comes out is the same for all: the events as they
 * stand in JSON, unchecked.
 */
import { parseJson } from '../events/index.ts'
import { Refusal } from './inbound-problem.ts'

export type Mode = 'structured' | 'batch' | 'binary'

/** By the content type, as the HTTP binding says; a body that is encoded or not JSON in UTF-8 is refused unread. */
export function modeOf(headers: Headers): Mode {
  const [mediaType = '', ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([\w-]+)"?\s*$/.exec(one)?.[1]).find(Boolean) ?? 'utf-8'
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw new Refusal(415, 'Send the body without a content encoding.')
  if (charset !== 'utf-8' && charset !== 'utf8') throw new Refusal(415, 'Send the body in UTF-8.')
  const kind = mediaType.trim()
  if (kind === 'application/cloudevents+json') return 'structured'
  if (kind === 'application/cloudevents-batch+json') return 'batch'
  if (headers.has('ce-specversion') && (kind === '' || JSON_TYPE.test(kind))) return 'binary'
  throw new Refusal(
    415,
    'Send CloudEvents 1.0: `application/cloudevents+json`, `application/cloudevents-batch+json`, or JSON with `ce-` headers.',
  )
}

const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json$/

export function readEvents(mode: Mode, headers: Headers, body: Uint8Array, maxEvents: number): unknown[] {
  if (mode === 'binary') return [readHeaders(headers, body)]
  const value = readJson(body)
  if (mode === 'structured') return [value]
  if (!Array.isArray(value)) throw new Refusal(400, 'A batch is a JSON array of CloudEvents.')
  if (value.length > maxEvents) {
    throw new Refusal(413, `The batch has ${value.length} events, more than ${maxEvents}. Send fewer at a time.`)
  }
  return value
}

function readHeaders(headers: Headers, body: Uint8Array): object {
  const attributes = [...headers]
    .filter(([name]) => name.startsWith('ce-'))
    .map(([name, value]) => [name.slice('ce-'.length), decodeHeader(name, value)] as const)
  return { ...Object.fromEntries(attributes), data: body.length === 0 ? null : readJson(body) }
}

function decodeHeader(name: string, value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    throw new Refusal(400, `The header "${name}" is not percent-encoded UTF-8.`)
  }
}

/** A byte order mark stays, and is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readJson(body: Uint8Array): unknown {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    throw new Refusal(400, 'The body is not UTF-8.')
  }
  try {
    return parseJson(text)
  } catch (error) {
    throw new Refusal(400, error instanceof Error ? error.message : 'The body is not JSON.')
  }
}
