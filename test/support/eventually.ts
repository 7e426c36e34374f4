import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Repeats `look` until it neither throws nor returns undefined or false, and gives what it returned. The deadline is
 * there to end a test that cannot pass, so it is generous; nothing is inferred from how long it took.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  { deadline = 20_000, every = 20 }: { deadline?: number; every?: number } = {},
): Promise<Exclude<T, undefined | false>> {
  const end = Date.now() + deadline
  for (;;) {
    let problem: unknown
    try {
      const found = await look()
      if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>
      problem = new Error(`still ${String(found)}`)
    } catch (error) {
      problem = error
    }
    if (Date.now() > end) throw new Error(`did not happen within ${deadline} ms`, { cause: problem })
    await sleep(every)
  }
}
