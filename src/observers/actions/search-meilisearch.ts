/**
 * `kind = "meilisearch"`. It has no versions and does what it is asked later, in the order it was asked. So the position
 * is a field of the document, and a write asks for it first, waits for its turn behind other writes of the document in
 * this process, and ends when Meilisearch says that the task has. Two processes can still ask at the same time, and a
 * document that is deleted leaves no position behind: only `order_by` keeps a late retry away from both.
 */
import { parseJson, stringifyJson } from '../../events/index.ts'
import { createInTurnByKey } from '../../runtime/index.ts'
import { type DocumentWrite, keyOf, type WriteOutcome } from '../../search/index.ts'
import type { SearchProvider } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import type { SearchEngine, WriteResult } from './search-engine.ts'
import { type Asked, createSearchHttp, SEARCH_TIMEOUT_MS, type SearchHttpContext, segment } from './search-http.ts'
import { meilisearchIdProblem, meilisearchIndexProblem } from './search-names.ts'

/** The field that holds the position. */
const POSITION_FIELD = '_position'
const PRIMARY_KEY = 'id'
const FIRST_LOOK_MS = 10
const LONGEST_PAUSE_MS = 500

export function meilisearch(provider: SearchProvider, context: SearchHttpContext): SearchEngine {
  const { clock } = context
  const http = createSearchHttp(provider, context)
  /** Two writes of one document must not pass each other. */
  const inTurn = createInTurnByKey()
  const what = `The search engine at ${http.origin}`

  /** Calls of one attempt share its time. */
  function attempt(signal: AbortSignal) {
    const endMs = clock.monotonic() + SEARCH_TIMEOUT_MS
    return { signal, leftMs: () => Math.max(1, endMs - clock.monotonic()) }
  }

  async function writeNow(write: DocumentWrite, { signal, leftMs }: Attempt): Promise<WriteResult> {
    const documents = `/indexes/${segment(write.index)}/documents`
    const one = `${documents}/${segment(write.id)}`
    const call = () => ({ timeoutMs: leftMs(), signal })
    const known = await http.ask({ method: 'GET', path: `${one}?fields=${POSITION_FIELD}`, expected: [404], ...call() })
    if (known.status !== 404 && positionIn(known) > write.position) return toResult('superseded', known)
    const asked =
      write.document === null
        ? await http.ask({ method: 'DELETE', path: one, ...call() })
        : await http.ask({
            method: 'POST',
            path: `${documents}?primaryKey=${PRIMARY_KEY}`,
            body: bodyOf(write),
            ...call(),
          })
    await untilDone(asked, write, { signal, leftMs })
    return toResult('written', asked)
  }

  async function untilDone(asked: Asked, { document }: DocumentWrite, { signal, leftMs }: Attempt): Promise<void> {
    const task = fieldsOf(asked).taskUid
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      if (leftMs() <= pauseMs) throw unfinished(asked)
      await clock.sleep(pauseMs, signal)
      const look = await http.ask({ method: 'GET', path: `/tasks/${String(task)}`, timeoutMs: leftMs(), signal })
      const { status, error } = fieldsOf(look)
      if (status === 'succeeded') return
      if (status !== 'failed' && status !== 'canceled') continue
      const { type, code } = (error ?? {}) as { type?: unknown; code?: unknown }
      // Nothing there to delete: then it is not there, as it should be.
      if (document === null && code === 'index_not_found') return
      throw refused(look, String(status), type !== 'invalid_request')
    }
  }

  function unfinished({ request, response }: Asked): ObserverError {
    const message = `${what} took the document and had not worked on it in time. It is tried again as configured.`
    return new ObserverError('OB004', message, { transient: true, detail: { request, response } })
  }

  function refused({ request, response }: Asked, status: string, transient: boolean): ObserverError {
    const advice = transient
      ? 'It is tried again as configured.'
      : 'It is not tried again. Look at the answer in the run record, correct the action, then redrive the dead letter.'
    const message = `${what} took the document, and its task ended as "${status}". ${advice}`
    return new ObserverError('OB004', message, { transient, detail: { request, response } })
  }

  return {
    kind: 'meilisearch',
    destination: `search ${http.origin}`,
    language: '',
    indexProblem: meilisearchIndexProblem,
    idProblem: meilisearchIdProblem,
    write: (write, { signal }) => inTurn(keyOf({ ...write, tenant: null }), () => writeNow(write, attempt(signal))),
  }
}

interface Attempt {
  readonly signal: AbortSignal
  leftMs(): number
}

function bodyOf({ document, id, position }: DocumentWrite): string {
  const fields = { ...document, [PRIMARY_KEY]: id, [POSITION_FIELD]: position }
  return stringifyJson([fields], { maxBytes: 8 * 1_048_576, maxDepth: 101, name: 'document' })
}

/** 0 for a document that somebody else has put there. */
function positionIn(answer: Asked): bigint {
  const position = fieldsOf(answer)[POSITION_FIELD]
  return typeof position === 'bigint' || Number.isSafeInteger(position) ? BigInt(position as bigint) : 0n
}

function fieldsOf({ start }: Asked): Record<string, unknown> {
  try {
    const value = parseJson(start.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function toResult(outcome: WriteOutcome, { request, response }: Asked): WriteResult {
  return { outcome, request, response }
}
