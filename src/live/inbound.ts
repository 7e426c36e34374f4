/**
 * `ac.live.inbound`: an HTTP endpoint through which others publish CloudEvents into the log. It promises that nothing is
 * appended for a stranger, that a request is appended as a whole or not at all, and that sending one again is safe.
 */
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import { classify } from '../postgres/index.ts'
import { type Clock, createThrottledLog, type Logger, type Registry, summarizeError } from '../runtime/index.ts'
import { type AppendParts, appendReceived, type InboundEvent } from './inbound-append.ts'
import { checkSignature, checkToken, identify, type Sender } from './inbound-auth.ts'
import { BodyUsed, readBody } from './inbound-body.ts'
import { type Received, toReceived } from './inbound-event.ts'
import { modeOf, readEvents } from './inbound-modes.ts'
import { type NodeHandler, toNodeHandler } from './inbound-node.ts'
import { type InboundOptions, type InboundSettings, toInboundSettings } from './inbound-options.ts'
import { type Mistake, Refusal, toProblem } from './inbound-problem.ts'

export interface InboundHandler {
  (request: Request): Promise<Response>
  /** The same for Node's `http`, Express and Fastify. Mount it before anything that reads bodies. */
  readonly node: NodeHandler
}

export interface InboundParts extends AppendParts {
  readonly definitions: EventDefinitions | undefined
  readonly limits: { readonly maxPayloadBytes: number; readonly maxNesting: number }
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
}

export type Inbound = <Principal = string | null>(options: InboundOptions<Principal>) => InboundHandler

export function createInbound(parts: InboundParts): Inbound {
  const { clock, logger, metrics } = parts
  const logRepeatedly = createThrottledLog({ logger, clock })
  const events = metrics.counter({
    name: 'aftercommit_inbound_events_total',
    help: 'Events sent from outside, by what became of them; a request whose events were not read counts as one.',
    labels: ['outcome'],
  })
  const count = (outcome: Outcome, by: number) => by > 0 && events.labels({ outcome }).inc(by)

  return (options) => {
    const settings = toInboundSettings(options)

    async function handle(request: Request): Promise<Response> {
      const progress: Progress = { unread: request.body !== null, size: 1 }
      try {
        const taken = await take(request, settings, parts, progress)
        const repeated = taken.filter(({ duplicate }) => duplicate).length
        count('duplicate', repeated)
        count('accepted', taken.length - repeated)
        return toAnswer(taken, repeated)
      } catch (error) {
        const refusal = error instanceof Refusal ? error : explain(error)
        count(outcomeOf(refusal), progress.size)
        if (refusal.cause !== undefined) {
          const fields = { status: refusal.status, err: summarizeError(refusal.cause) }
          logRepeatedly('error', refusal.message, fields, 'events from outside could not be taken')
        }
        return toProblem(refusal, progress)
      }
    }

    return Object.assign(handle, { node: toNodeHandler(handle) })
  }
}

type Outcome = 'accepted' | 'duplicate' | 'conflict' | 'invalid' | 'unauthorized' | 'failed'

/** How far a request came: what a refusal has to know. */
interface Progress {
  unread: boolean
  /** Events in it, once that is known. */
  size: number
}

async function take(
  request: Request,
  settings: InboundSettings,
  parts: InboundParts,
  progress: Progress,
): Promise<InboundEvent[]> {
  if (request.method !== 'POST') throw new Refusal(405, 'Events are sent with POST.', { headers: { allow: 'POST' } })
  const principal = await checkToken(request, settings)
  const mode = modeOf(request.headers)
  if (mode === 'binary' && settings.secrets.length > 0) throw new Refusal(415, BINARY_IS_UNSIGNED)
  const body = await readBody(request, settings, parts.clock)
  progress.unread = false
  checkSignature(request.headers, body, settings, parts.clock)
  const sender = await identify(principal, settings)
  const given = readEvents(mode, request.headers, body, settings.maxEvents)
  progress.size = given.length
  return appendReceived(parts, await readAll(given, sender, settings, parts))
}

const BINARY_IS_UNSIGNED =
  'The signature does not cover `ce-` headers. Send the event as `application/cloudevents+json`, or several as ' +
  '`application/cloudevents-batch+json`, and sign that body.'

async function readAll(
  given: readonly unknown[],
  sender: Sender,
  { isAllowed }: InboundSettings,
  { definitions, limits }: InboundParts,
): Promise<Received[]> {
  const mistakes: Mistake[] = []
  const received: Received[] = []
  for (const [index, one] of given.entries()) {
    const event = await toReceived(one, index, { isAllowed, definitions, ...limits, ...sender }, mistakes)
    if (event !== undefined) received.push(event)
  }
  if (mistakes.length === 0) return received
  throw new Refusal(400, 'Some events are not as they should be, so nothing was appended.', { mistakes })
}

function toAnswer(events: readonly InboundEvent[], repeated: number): Response {
  return Response.json(
    { events },
    { status: repeated === events.length ? 200 : 202, headers: { 'cache-control': 'no-store' } },
  )
}

/** Whatever is not a mistake of the sender. Trying again is safe: what was appended after all is found by its id. */
function explain(cause: unknown): Refusal {
  if (cause instanceof BodyUsed) return new Refusal(500, 'This endpoint is not set up to read a body.', { cause })
  return isPassing(cause)
    ? new Refusal(503, 'The events could not be appended now. Send them again, with the same ids.', {
        headers: LATER,
        cause,
      })
    : new Refusal(500, 'The events could not be appended.', { cause })
}

const LATER = { 'retry-after': '5' }

function isPassing(error: unknown): boolean {
  return classify(error) !== 'permanent' || (error instanceof AftercommitError && error.code === 'STOPPED')
}

function outcomeOf({ status }: Refusal): Outcome {
  if (status === 401) return 'unauthorized'
  if (status === 409) return 'conflict'
  return status < 500 ? 'invalid' : 'failed'
}
