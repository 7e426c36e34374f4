/**
 * Makes indexes anew from history while they are in use. Each gets a generation of its own beside the one in use:
 *
 *   begun        events write into both from here on; searches see the old one
 *   filled       history is written into the new one; a newer event that was there first wins
 *   in use       in one step; the old one is removed
 *   given up     on a failure, or an hour after the last sign of life: the old one stays in use, the new one is removed
 *
 * Only one reindex fills an index: the one that began last. An earlier one finds that its number is gone, and ends.
 */
import { AftercommitError } from '../errors.ts'
import { parseJson } from '../events/index.ts'
import { type Database, sqlstateOf } from '../postgres/index.ts'
import { type DocumentWrite, newestOf } from './document.ts'
import {
  abandonGeneration,
  type BuildRow,
  beginGenerations,
  type KeptRow,
  type Span,
  selectUnread,
  touchGenerations,
  useGeneration,
} from './rebuild-statements.ts'
import { type BuiltWrite, buildDocuments } from './statements.ts'
import { removeGenerations, takeAwayIndex } from './upkeep-statements.ts'
import { writeEach } from './write-each.ts'

export interface RebuildOptions {
  readonly database: Database
  /** Made if they are not there. */
  readonly indexes: readonly string[]
  /** Every other index that is there as well. */
  readonly all: boolean
  readonly language: string
}

export interface Rebuild {
  /** Those that are being built. */
  readonly indexes: ReadonlySet<string>
  /** What Postgres does not take is answered, with why. */
  write(writes: readonly DocumentWrite[]): Promise<RefusedWrite[]>
  /**
   * Takes over documents whose events were not read: those before the span, and those after it that were written a moment
   * before this began, when nobody could know of it. Answers how many.
   */
  carryOver(index: string, span: Span): Promise<number>
  /** Puts one in use. */
  use(index: string): Promise<void>
  /** Gives up those that were not put in use; their old generation stays. */
  end(): Promise<void>
}

export interface RefusedWrite {
  readonly write: DocumentWrite
  readonly error: unknown
}

const SIGN_OF_LIFE_MS = 10_000
const PAGE = 500

export async function beginRebuild({ database, indexes, all, language }: RebuildOptions): Promise<Rebuild> {
  const { clock } = database
  const begun = await beginGenerations(database, indexes, all, language)
  const building = new Map(begun.map((one) => [one.name, one]))
  let seenMs = clock.monotonic()

  async function write(writes: readonly DocumentWrite[]): Promise<RefusedWrite[]> {
    const newest = [...newestOf(writes).values()]
    const refused: RefusedWrite[] = []
    for (let at = 0; at < newest.length; at += PAGE) {
      const page = newest.slice(at, at + PAGE)
      const settled = await writeEach(page, (some) => buildDocuments(database, some.map(toBuilt)))
      for (const [one, result] of settled) {
        if (!('error' in result)) {
          if (!result.known) throw takenOver(one.index)
        } else if (isOfTheDocument(result.error)) refused.push({ write: one, error: result.error })
        else throw result.error
      }
    }
    await giveSign()
    return refused
  }

  /** So that upkeep does not take it for dead. */
  async function giveSign(): Promise<void> {
    if (clock.monotonic() - seenMs < SIGN_OF_LIFE_MS) return
    seenMs = clock.monotonic()
    await touchGenerations(database, [...building.values()])
  }

  const toBuilt = (one: DocumentWrite): BuiltWrite => ({ write: one, generation: generationOf(one.index) })

  function generationOf(index: string): number {
    return building.get(index)?.generation ?? 0
  }

  async function carryOver(index: string, span: Span): Promise<number> {
    const one = building.get(index)!
    let carried = 0
    let above: KeptRow | null = null
    for (;;) {
      const rows: KeptRow[] = await selectUnread(database, one, span, above, PAGE)
      above = rows.at(-1) ?? null
      if (above === null) return carried
      carried += rows.length
      await write(
        rows.map(({ tenant, id, pos, document: json }) => ({
          index,
          tenant,
          id,
          position: BigInt(pos),
          document: json === null ? null : (parseJson(json) as Record<string, unknown>),
          json,
          language,
        })),
      )
    }
  }

  async function use(index: string): Promise<void> {
    const one = building.get(index)!
    if (!(await useGeneration(database, one))) throw takenOver(index)
    building.delete(index)
    while ((await removeGenerations(database, index)) > 0);
  }

  async function giveUp(one: BuildRow): Promise<void> {
    await abandonGeneration(database, one)
    while ((await removeGenerations(database, one.name)) > 0);
    if (indexes.includes(one.name)) await takeAwayIndex(database, one.name)
  }

  return {
    indexes: new Set(building.keys()),
    write,
    carryOver,
    use,
    async end() {
      for (const one of building.values()) await giveUp(one)
      building.clear()
    },
  }
}

/** Its data or its size. Anything else concerns all of them, and an index without them must not be put in use. */
function isOfTheDocument(error: unknown): boolean {
  return /^(22|54)/.test(sqlstateOf(error) ?? '')
}

function takenOver(index: string): AftercommitError {
  return new AftercommitError(
    'BAD_STATE',
    `Another reindex of ${JSON.stringify(index)} has begun, or the index was removed, so this one ended and changed nothing. ` +
      'Wait for the other one, or begin again.',
  )
}
