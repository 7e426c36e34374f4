/** What is written into an index, and what of it wins when several writes of one document meet. */

export interface DocumentWrite {
  readonly index: string
  readonly tenant: string | null
  readonly id: string
  /** Of the event that says so. */
  readonly position: bigint
  /** Null deletes. */
  readonly document: Readonly<Record<string, unknown>> | null
  /** The same as JSON. */
  readonly json: string | null
  /** What the words of a new index are made with; an index that exists keeps its own. */
  readonly language: string
}

/** `superseded`: a newer event was there first, so nothing was changed. */
export type WriteOutcome = 'written' | 'superseded'

/** What one document is known by. */
export function keyOf({ index, tenant, id }: Pick<DocumentWrite, 'index' | 'tenant' | 'id'>): string {
  return `${index}\u0000${tenant ?? ''}\u0000${id}`
}

/**
 * One write per document, the newest. A statement cannot write a row twice, and the order in which writes came says
 * nothing: of equal positions the later one counts, as it repeats the earlier one.
 */
export function newestOf<Write extends DocumentWrite>(writes: readonly Write[]): Map<string, Write> {
  const newest = new Map<string, Write>()
  for (const write of writes) {
    const key = keyOf(write)
    const known = newest.get(key)
    if (known === undefined || write.position >= known.position) newest.set(key, write)
  }
  return newest
}
