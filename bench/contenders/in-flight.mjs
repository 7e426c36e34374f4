import { setTimeout as sleep } from 'node:timers/promises'

const DEADLINE_MS = 60_000

/** Plays so many, some at a time, and answers with the milliseconds from the first start to the last end. */
export async function playInFlight({ count, inFlight }, playOne) {
  const began = performance.now()
  let left = count
  const work = async () => {
    while (left-- > 0) await playOne()
  }
  const tooLong = sleep(DEADLINE_MS, undefined, { ref: false }).then(() => {
    throw new Error(`${count} took more than ${DEADLINE_MS / 1_000} s`)
  })
  await Promise.race([Promise.all(Array.from({ length: inFlight }, work)), tooLong])
  return performance.now() - began
}
