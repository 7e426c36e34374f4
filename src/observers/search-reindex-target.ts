/** Where a reindex writes: into new generations of Postgres, or in place. */
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'
import type { Database } from '../postgres/index.ts'
import { type Clock, reconnectDelay, retryUntil } from '../runtime/index.ts'
import { beginRebuild, type DocumentWrite, type DocumentWriter, type Rebuild, type Span } from '../search/index.ts'
import type { PreparedSearch, SearchEngine } from './actions/index.ts'
import { ObserverError } from './observer-error.ts'
import type { Finished, ReindexTally } from './search-reindex-tally.ts'

export interface Target {
  wants(index: string): boolean
  /** Resolves when all of it is written. Throws when the engine cannot be written to. */
  write(writes: readonly ComposedWrite[], tally: ReindexTally): Promise<void>
  /** Puts in use what was built, from what was read. */
  finish(span: Span, written: ReindexTally['written']): Promise<Finished[]>
  /** Gives up what was not put in use. */
  close(): Promise<void>
}

export interface ComposedWrite {
  readonly write: DocumentWrite
  readonly eventId: string
  readonly observer: string
}

export interface TargetParts {
  readonly database: Database
  readonly documents: DocumentWriter
  readonly signal: AbortSignal
}

export async function openTarget(
  actions: readonly PreparedSearch[],
  indexes: readonly string[] | undefined,
  parts: TargetParts,
): Promise<Target> {
  // One file names one engine.
  const { engine } = actions[0]!
  const constant = new Set(actions.flatMap(({ index }) => index ?? []))
  const hasTemplates = actions.some(({ index }) => index === null)
  if (!hasTemplates) for (const index of indexes ?? []) checkKnown(index, constant)
  const wants = (index: string) => indexes === undefined || indexes.includes(index)
  await engine.ready?.()
  if (engine.kind !== 'postgres') return inPlace(engine, wants, parts.database.clock, parts.signal)
  const rebuild = await beginRebuild({
    database: parts.database,
    indexes: indexes ?? [...constant],
    all: indexes === undefined && hasTemplates,
    language: engine.language,
  })
  return inGenerations(rebuild, parts.documents, wants, constant)
}

function inGenerations(
  rebuild: Rebuild,
  documents: DocumentWriter,
  wants: Target['wants'],
  constant: ReadonlySet<string>,
): Target {
  return {
    wants,
    async write(composed, tally) {
      for (const { write } of composed) tally.write(write.index, write.document === null)
      const writes = composed.map(({ write }) => write)
      const refused = await rebuild.write(writes.filter(({ index }) => rebuild.indexes.has(index)))
      for (const { write, error } of refused) {
        const { eventId, observer } = composed.find((one) => one.write === write)!
        tally.problem({ id: eventId, position: write.position }, observer, error)
      }
      // Of an index whose name only an event could tell, and that nobody had written to when this began.
      await Promise.all(writes.filter(({ index }) => !rebuild.indexes.has(index)).map((one) => documents.write(one)))
    },
    async finish(span, written) {
      const finished: Finished[] = []
      for (const index of rebuild.indexes) {
        // No rule of ours writes to it: it is somebody else's, and what is there stays.
        const isOurs = constant.has(index) || written.has(index)
        const carried = isOurs ? await rebuild.carryOver(index, span) : 0
        if (isOurs) await rebuild.use(index)
        finished.push({ index, carried, outcome: isOurs ? 'replaced' : 'untouched' })
      }
      const others = [...written.keys()].filter((index) => !rebuild.indexes.has(index))
      return [...finished, ...others.map((index): Finished => ({ index, carried: 0, outcome: 'written' }))]
    },
    close: () => rebuild.end(),
  }
}

const AT_A_TIME = 16
const MOST_ATTEMPTS = 5

function inPlace(engine: SearchEngine, wants: Target['wants'], clock: Clock, signal: AbortSignal): Target {
  /** What the engine refuses is told; an engine that is away ends the reindex after a while. */
  async function writeOne({ write, eventId, observer }: ComposedWrite, tally: ReindexTally): Promise<void> {
    const isAway = (error: unknown) => error instanceof ObserverError && error.transient
    try {
      await retryUntil(() => engine.write(write, { signal }), {
        clock,
        signal,
        mayRetry: (error, attempt) => isAway(error) && attempt < MOST_ATTEMPTS,
        delay: (attempt, error) => (error as ObserverError).retryAfterMs ?? reconnectDelay(attempt),
      })
      tally.write(write.index, write.document === null)
    } catch (error) {
      if (!(error instanceof ObserverError) || error.transient) throw error
      tally.problem({ id: eventId, position: write.position }, observer, error)
    }
  }

  return {
    wants,
    async write(composed, tally) {
      const left = [...composed]
      const worker = async () => {
        for (let one = left.shift(); one !== undefined; one = left.shift()) await writeOne(one, tally)
      }
      await Promise.all(Array.from({ length: AT_A_TIME }, worker))
    },
    finish: async (_, written) =>
      [...written.keys()].map((index): Finished => ({ index, carried: 0, outcome: 'written' })),
    close: async () => {},
  }
}

function checkKnown(index: string, constant: ReadonlySet<string>): void {
  if (constant.has(index)) return
  const near = closest(index, constant)
  throw new AftercommitError(
    'BAD_OPTION',
    `No rule writes to an index ${JSON.stringify(index)}, so nothing was made anew.` +
      `${near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`}`,
  )
}
