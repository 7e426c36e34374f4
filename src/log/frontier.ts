/**
 * How far the log is final. Positions are handed out at insert and become visible at commit, so 6 may be seen while 5 is
 * still coming: a reader that moved past 5 would lose it for ever. `nextval` itself holds a RowExclusiveLock on the
 * sequence until its transaction ends, whatever the client, isolation level, savepoint or PREPARE. Hence:
 *
 *   head    := select max(position)                      one statement, finished before the next begins
 *   holders := who holds that lock and the one of events one statement
 *   once every one of them is gone, and a NEW read was made after that, whatever number at or below `head` that read
 *   does not show was rolled back. Everything up to `head` is final.
 *
 * Do not simplify. Reading and scanning in one statement, or in REPEATABLE READ, loses events: the snapshot is older
 * than the scan, and a transaction that commits in between is in neither. The sequence's last_value is no upper bound: a
 * plain SELECT can see it 32 ahead of what was handed out. Joining the holders with pg_stat_activity by pid drops prepared
 * transactions. No clock decides anything. test/guarantees/order/pitfalls.test.ts plays each of these losing an event;
 * docs/decisions/0001 has the proof.
 */
export interface HeldLocks {
  /** Its `virtualtransaction`. */
  readonly holder: string
  readonly of_sequence: boolean
  readonly of_events: boolean
}

/**
 * Transactions that may have written an event: they hold RowExclusiveLock on the sequence and on events. Every way in takes
 * the lock of events first, so nobody has a number that counts without both; and the lock of the sequence alone, which any
 * role can take and keep by a call that fails, keeps nobody waiting.
 *
 * PREPARE TRANSACTION hands locks over one by one. A scan in between shows one of them under the new name of the transaction,
 * which begins with `-1/`, and the other one under its old name: both halves in one scan, which sees a single moment. So half
 * a prepared transaction counts while some session has the other half alone.
 */
export function findHolders(locks: readonly HeldLocks[]): string[] {
  const halves = locks.filter(({ of_sequence, of_events }) => of_sequence !== of_events)
  const isHandedOver = (half: HeldLocks) =>
    isRenamed(half.holder) && halves.some((other) => !isRenamed(other.holder) && other.of_sequence !== half.of_sequence)
  return locks.filter((held) => (held.of_sequence && held.of_events) || isHandedOver(held)).map(({ holder }) => holder)
}

export interface Observation {
  /** The highest visible position, read in a statement that had finished before the lock scan began. */
  readonly head: bigint
  /** `virtualtransaction` of every transaction that may have written an event. */
  readonly holders: readonly string[]
  /** The same of every holder of the sequence's lock: arming waits for them all. */
  readonly numberHolders: readonly string[]
}

interface Pending {
  readonly head: bigint
  readonly waitingFor: Set<string>
}

export interface Frontier {
  /** Everything at or below is final. */
  readonly position: bigint
  /** Still waiting for some transaction to end. */
  readonly blocked: boolean
  /** Takes one observation. True when the frontier moved: only a read made after this observation may rely on it. */
  observe(observation: Observation, nowMs: number): boolean
  /** A contiguous run was read up to here: nothing is missing below it. */
  reachedWithoutHole(position: bigint): void
  /** Forgets what it waits for, as after a reconnect. Always safe: it only waits again. */
  forget(): void
  /** Another history, or a frontier that somebody published. */
  restart(position: bigint): void
}

/** A new entry at most this often: entries are free to drop, and each poll looks at all of them. */
const ENTRY_EVERY_MS = 8
const MAX_ENTRIES = 64

export function createFrontier(start: bigint): Frontier {
  let position = start
  let pending: Pending[] = []
  let lastEntryMs = Number.NEGATIVE_INFINITY

  function settle(): boolean {
    // Holders left in an earlier entry are also in every later one, so the settled entries come first.
    let settled = 0
    while (settled < pending.length && pending[settled]!.waitingFor.size === 0) settled++
    if (settled === 0) return false
    const head = pending[settled - 1]!.head
    pending = pending.slice(settled)
    if (head <= position) return false
    position = head
    return true
  }

  return {
    get position() {
      return position
    },
    get blocked() {
      return pending.length > 0
    },
    observe({ head, holders }, nowMs) {
      const present = new Set(holders)
      const renamed = holders.filter(isRenamed)
      for (const entry of pending) {
        for (const holder of entry.waitingFor) if (!present.has(holder)) entry.waitingFor.delete(holder)
        for (const holder of renamed) entry.waitingFor.add(holder)
      }
      const newest = pending.at(-1)
      const newer = head > (newest?.head ?? position)
      if (newer && (present.size === 0 || nowMs - lastEntryMs >= ENTRY_EVERY_MS)) {
        // When full the newest gives way: the older ones settle sooner.
        if (pending.length >= MAX_ENTRIES) pending.pop()
        pending.push({ head, waitingFor: present })
        lastEntryMs = nowMs
      }
      return settle()
    },
    reachedWithoutHole(reached) {
      if (reached <= position) return
      position = reached
      pending = pending.filter((entry) => entry.head > position)
    },
    forget() {
      pending = []
      lastEntryMs = Number.NEGATIVE_INFINITY
    },
    restart(at) {
      position = at
      this.forget()
    },
  }
}

/**
 * A restart of the server gives prepared transactions another name, and a reader behind a pooler need not notice the
 * restart. So whoever has such a name may be one that was waited for under its first name: always wait for it.
 */
function isRenamed(holder: string): boolean {
  return holder.startsWith('-1/')
}

/**
 * How many of these positions, read in order, may be delivered: those at or below the frontier, then the run that
 * follows without a hole. `last` is where the delivered part ends.
 */
export function deliverable(
  positions: readonly bigint[],
  after: bigint,
  frontier: bigint,
): { count: number; last: bigint } {
  let count = 0
  let last = after
  for (const position of positions) {
    // Whatever is missing up to the frontier was rolled back, so the run may begin right behind it.
    if (position > frontier && position !== (last < frontier ? frontier : last) + 1n) break
    last = position
    count++
  }
  return { count, last }
}
