import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_MS = 5
const DEADLINE_MS = 60_000

/** Looks until `isSo` says true; what never came is named by `what`. */
export async function eventually(isSo, what, deadlineMs = DEADLINE_MS) {
  const deadline = performance.now() + deadlineMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs / 1_000} s for ${what}`)
    await sleep(LOOK_MS)
  }
}
