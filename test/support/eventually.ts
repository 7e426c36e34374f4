import { setTimeout as sleep } from 'node:timers/promises'

/** What says "not yet". A count of none does, too: a wait that takes it for an answer waits for nothing. */
type NotYet = undefined | null | false | 0 | 0n | ''

/**
 * Repeats `look` until it neither throws nor says "not yet", and gives what it returned. The deadline is there to end a
 * test that cannot pass, so it is generous; nothing is inferred from how long it took.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  { deadline = 40_000, every = 20 }: { deadline?: number; every?: number } = {},
): Promise<Exclude<T, NotYet>> {
  const end = Date.now() + deadline
  for (;;) {
    let problem: unknown
    try {
      const found = await look()
      if (found) return found as Exclude<T, NotYet>
      problem = new Error(`still ${String(found)}`)
    } catch (error) {
      problem = error
    }
    if (Date.now() > end) throw new Error(`did not happen within ${deadline} ms`, { cause: problem })
    await sleep(every)
  }
}
