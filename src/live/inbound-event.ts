/**
 * One CloudEvent from outside becomes an event to append, or the list of everything that is wrong with it. Who it is
 * from and whose it is come from the caller; position, times of ours, causes and depth are never taken from a body.
 */
import { createHash } from 'node:crypto'
import {
  type Changes,
  checkEventId,
  checkEventName,
  checkPayload,
  type EventDefinitions,
  InvalidPayloadError,
  stringifyJson,
} from '../events/index.ts'
import type { EmitRequest } from '../log/index.ts'
import { parseTraceparent } from '../runtime/index.ts'
import {
  type Aggregate,
  type Attributes,
  attempt,
  read,
  readAggregate,
  readObject,
  readText,
  readTime,
  required,
  type Tell,
} from './inbound-attributes.ts'
import type { Mistake } from './inbound-problem.ts'

export interface ReadingContext {
  readonly isAllowed: (type: string) => boolean
  readonly definitions: EventDefinitions | undefined
  readonly maxPayloadBytes: number
  readonly maxNesting: number
  readonly user: string | undefined
  readonly tenant: string | undefined
}

/** With a chosen id, so that a repetition is known. */
export type Received = EmitRequest & { readonly id: string }

/** What is found wrong is added to `mistakes`; undefined when anything was. */
export async function toReceived(
  given: unknown,
  index: number,
  context: ReadingContext,
  mistakes: Mistake[],
): Promise<Received | undefined> {
  const before = mistakes.length
  const tell: Tell = (field, detail) => mistakes.push({ index, field, detail })
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    tell('', 'is not a JSON object')
    return undefined
  }
  const attributes = given as Attributes
  const said = readSaid(attributes, tell)
  checkType(said.type, context, tell)
  await checkData(said, context, tell)
  const metadata = readMetadata(attributes, tell)
  if (mistakes.length > before) return undefined
  return toRequest(said, metadata, context)
}

/** What the sender says happened. Texts are empty where they were wrong, and then there is a mistake. */
interface Said {
  readonly source: string
  readonly sourceId: string
  readonly type: string
  readonly aggregate: Aggregate | undefined
  readonly payload: unknown
  readonly changes: Record<string, unknown> | undefined
  readonly previous: Record<string, unknown> | undefined
  readonly occurredAt: Date | undefined
}

function readSaid(attributes: Attributes, tell: Tell): Said {
  if (read(attributes, 'specversion') !== '1.0') tell('specversion', 'is not "1.0"')
  if (read(attributes, 'data_base64') !== undefined) tell('data_base64', 'holds bytes; only JSON data is taken')
  const text = (name: string) => readText(attributes, name, tell)
  const sourceId = required('id', text('id'), tell)
  if (sourceId !== '') attempt('id', tell, () => checkEventId(sourceId))
  const source = required('source', text('source'), tell)
  if (!SOURCE.test(source)) tell('source', 'is not 1 to 1000 plain characters')
  return {
    source,
    sourceId,
    type: required('type', text('type'), tell),
    aggregate: readAggregate(text('aggregatetype'), text('aggregateid'), tell),
    payload: read(attributes, 'data') ?? null,
    changes: readObject('changes', text('changes'), tell),
    previous: readObject('previous', text('previous'), tell),
    occurredAt: readTime(text('time'), tell),
  }
}

/** Neither control characters nor half of a surrogate pair. */
const SOURCE = /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]{0,1000}$/u

function checkType(type: string, { isAllowed, definitions }: ReadingContext, tell: Tell): void {
  if (type === '') return
  attempt('type', tell, () => {
    checkEventName(type)
    if (!isAllowed(type)) tell('type', 'may not be published here')
    // The closest name is not told: it may be one that nobody outside should know of.
    else if (definitions !== undefined && definitions.get(type) === undefined)
      tell('type', 'is not an event known here')
  })
}

/** Checked here for the sake of the answer; what is appended is checked again and stored as its schema gives it. */
async function checkData(
  { type, payload, changes, previous }: Said,
  context: ReadingContext,
  tell: Tell,
): Promise<void> {
  const { definitions, maxPayloadBytes: maxBytes, maxNesting: maxDepth } = context
  const images = { data: payload, changes, previous }
  for (const [name, value] of Object.entries(images)) {
    if (value !== undefined) attempt(name, tell, () => void stringifyJson(value, { maxBytes, maxDepth, name }))
  }
  if (definitions?.get(type) === undefined) return
  try {
    await checkPayload(definitions, type, payload)
  } catch (error) {
    if (!(error instanceof InvalidPayloadError)) tell('data', 'could not be checked against the schema of its type')
    else for (const { path, message } of error.issues) tell(path.replace(/^payload/, 'data'), message)
  }
}

function readMetadata(attributes: Attributes, tell: Tell): { correlationId?: string; traceparent?: string } {
  const correlationId = readText(attributes, 'correlationid', tell)
  const traceparent = readText(attributes, 'traceparent', tell)
  if (correlationId !== undefined) {
    const tellOfText: Tell = (field) => tell(field, 'is not 1 to 255 plain characters')
    attempt('correlationid', tellOfText, () => checkEventId(correlationId))
  }
  return {
    ...(correlationId === undefined ? {} : { correlationId }),
    // A broken one costs a link between traces and nothing else.
    ...(traceparent === undefined || parseTraceparent(traceparent) === undefined ? {} : { traceparent }),
  }
}

function toRequest(
  { source, sourceId, type, aggregate, payload, changes, previous, occurredAt }: Said,
  metadata: { correlationId?: string; traceparent?: string },
  { user, tenant }: ReadingContext,
): Received {
  return {
    // Of the tenant too: nobody can take, or find out, an id of somebody else.
    id: `ce-${digestOf([tenant ?? null, source, sourceId])}`,
    type,
    payload,
    aggregate,
    changes: changes as Changes | undefined,
    previous,
    occurredAt,
    tenant,
    metadata: {
      ...metadata,
      ...(user === undefined ? {} : { userId: user }),
      source,
      source_id: sourceId,
    },
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 40)
}
