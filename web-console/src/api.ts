/** Talks to the server: reads, acts, and one stream for the whole page. */

export class ApiError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answerOf<T>(await fetch(address(path), { headers: { accept: 'application/json' }, ...(signal && { signal }) }))
}

export async function act<T = Record<string, unknown>>(path: string, body: object = {}): Promise<T> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return answerOf<T>(await fetch(address(path), init))
}

async function answerOf<T>(response: Response): Promise<T> {
  const body = await response.json().catch(() => ({}))
  if (response.ok) return body as T
  const { code = 'INTERNAL', message = `The server answered ${response.status}.` } = body.error ?? {}
  throw new ApiError(response.status, code, message)
}

function address(path: string): string {
  return new URL(`api/${path}`, document.baseURI).href
}

export interface StreamHandlers {
  status(status: LogStatus): void
  events(batch: { items: EventLine[]; more: number }): void
  down(message: string): void
  /** The connection is gone; the browser connects again by itself. */
  lost(): void
}

export function openStream(tails: boolean, handlers: StreamHandlers): () => void {
  const source = new EventSource(address(`stream${tails ? '?tail=1' : ''}`))
  const on = <T>(name: string, take: (data: T) => void) =>
    source.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent).data)))
  on<LogStatus>('status', handlers.status)
  on<{ items: EventLine[]; more: number }>('events', handlers.events)
  on<{ message: string }>('down', ({ message }) => handlers.down(message))
  source.onerror = () => handlers.lost()
  return () => source.close()
}

export interface Session {
  who: string
  role: 'viewer' | 'operator' | 'admin'
  environment: string | null
  read_only: boolean
  path: string
}

export interface LogStatus {
  at: string
  epoch: number
  head: string
  frontier: string
  holders: { pid: number | null; application: string | null; age_seconds: number | null; prepared_gid: string | null }[]
  problem: string | null
  processes: number
  server: string
  badges: { dead_letters: number; subscriptions: number; destinations: number }
}

export type State =
  | 'done'
  | 'running'
  | 'waiting'
  | 'scheduled'
  | 'retrying'
  | 'paused'
  | 'queued'
  | 'parked'
  | 'dead'
  | 'redriving'
  | 'discarded'
  | 'not_yet'
  | 'skipped'
  | 'unrecorded'

export interface Mark {
  name: string
  state: State
}

export interface EventLine {
  id: string
  position: string
  type: string
  aggregate_type: string | null
  aggregate_id: string | null
  version: number | null
  tenant: string | null
  recorded_at: string
  summary?: string
  strip?: Mark[]
}

export interface Page<T> {
  items: T[]
  next: string | null
}

export interface Subscription {
  id: string
  kind: string
  status: 'active' | 'failing' | 'stopped' | 'paused'
  reason: string | null
  position: string
  lag: string
  lag_seconds: number
  owner: string | null
  host: string | null
  dead_letters: number
  parked: number
  parked_keys: number
  on: string[]
  tenant: string | null
  updated_at: string
}

export interface Destination {
  destination: string
  circuit: 'closed' | 'open' | 'half-open'
  failures: number
  open_until: string | null
  resting_until: string | null
  paused: boolean
  who: string | null
  reason: string | null
  running: number
  waiting: number
  concurrency: number | null
  rate: number | null
}

export interface ErrorRecord {
  name: string
  code?: string
  message: string
}

export interface DeadLetter {
  id: string
  kind: string
  owner: string
  key: string
  status: string
  attempts: number
  error: ErrorRecord
  first_attempt_at: string
  last_attempt_at: string
  waiting: number
  who: string | null
  reason: string | null
  event_id: string
  event_type: string
  position: string
  event?: Record<string, unknown>
}

export interface Cause {
  kind: string
  owner: string
  code: string
  message: string
  count: number
  parked_keys: number
  oldest: string
  newest: string
  sample: string
}

export interface Delivery {
  id: string
  kind: string
  name: string
  owner: string
  state: State
  destination: string | null
  key: string | null
  attempts: number
  run_at: string
  created_at: string
  error: ErrorRecord | null
  process: string | null
  event_id: string | null
}

export interface Reaction {
  state: State
  at: string | null
  derived: boolean
  due_at: string | null
  attempts: number
  error: ErrorRecord | null
  dead_letter: string | null
  delivery: string | null
  waits_for: string | null
}

export interface Action extends Reaction {
  name: string
  type: string
  destination: string | null
  history: {
    attempt: number
    at: string
    duration_ms: number
    outcome: string
    message: string
    code: string | null
    request: { method?: string; url?: string; headers?: Record<string, string> } | null
    response: { status?: number; headers?: Record<string, string>; body?: string } | null
  }[]
}

export interface Receipt {
  event: {
    id: string
    type: string
    position: string
    aggregate_type: string | null
    aggregate_id: string | null
    version: number | null
    tenant: string | null
    occurred_at: string
    recorded_at: string
    payload?: unknown
    changes?: unknown
    previous?: unknown
    metadata: Record<string, unknown>
  }
  as_of: string
  is_settled: boolean
  sentence: string
  counts: Record<string, number>
  open: { what: string; why: string; command: string | null }[]
  subscriptions: (Reaction & { id: string; kind: string; owner: string | null })[]
  other_subscriptions: number
  observers: {
    observer: string
    verdict: string
    reason: string
    condition: string | null
    version: number | null
    since: string
    parts: { source: string; value?: unknown; absent?: string; error?: string }[]
    actions: Action[]
  }[]
  work: (Reaction & { kind: string; name: string; workflow: { type: string; id: string } })[]
  caused: {
    id: string
    type: string
    position: string
    aggregate_type: string | null
    aggregate_id: string | null
    recorded_at: string
    depth: number
  }[]
  complete: boolean
  searched_to: string
  notes: string[]
}
