/**
 * One process at a time may start or stop the server of a data folder. Node has no file locks that the system releases
 * for a killed holder, so the lock is a row of numbered files: the highest number is the holder, and it counts only while
 * the process named in it lives and has not written that it is done.
 *
 * A claim links a finished file to the next number, which exactly one process can do, and then looks again: it holds the
 * lock only if its number is still the highest. Nobody ever removes a lock because it looks abandoned (two processes
 * could both do that, one of them to a fresh lock); a dead holder is simply followed by the next number.
 */
import { randomBytes } from 'node:crypto'
import { link, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EmbeddedError } from './errors.ts'
import { isAlive, ownIdentity, type ProcessIdentity, readIdentity } from './processes.ts'

/** Longer than the slowest first start we want to support; reached only when a holder hangs. */
const PATIENCE_MS = 180_000

/** So many old numbers stay, so that a listing taken during a change of hands still sees a high one. */
const KEPT = 8

export async function withLock<T>(folder: string, work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  const number = await acquire(folder, Date.now() + patienceMs)
  try {
    return await work()
  } finally {
    await release(folder, number)
  }
}

async function acquire(folder: string, deadline: number): Promise<number> {
  for (;;) {
    const top = await highest(folder)
    const holder = await holderOf(folder, top)
    if (holder === undefined) {
      if (await claim(folder, top + 1)) return top + 1
      continue
    }
    if (Date.now() > deadline) {
      throw new EmbeddedError(
        'START_FAILED',
        `Process ${holder.pid} has been starting or stopping the server of ${folder} for too long, so this one gave up. ` +
          'End that process and try again.',
      )
    }
    await wait(15 + Math.random() * 20)
  }
}

async function claim(folder: string, number: number): Promise<boolean> {
  const draft = await write(folder, ownIdentity())
  try {
    await link(draft, join(folder, String(number)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
  if ((await highest(folder)) !== number) {
    await rm(join(folder, String(number)), { force: true })
    return false
  }
  await sweep(folder, number)
  return true
}

/** The folder may be gone by now, when somebody deleted the data folder; then there is nobody left to tell. */
async function release(folder: string, number: number): Promise<void> {
  try {
    await rename(await write(folder, { done: true }), join(folder, String(number)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

async function highest(folder: string): Promise<number> {
  return Math.max(0, ...(await numbers(folder)))
}

async function numbers(folder: string): Promise<number[]> {
  return (await readdir(folder)).filter((name) => /^\d+$/.test(name)).map(Number)
}

/** The living process that holds a number, if there is one. */
async function holderOf(folder: string, number: number): Promise<ProcessIdentity | undefined> {
  const holder = await readIdentity(join(folder, String(number)))
  return holder && isAlive(holder) ? holder : undefined
}

async function write(folder: string, content: ProcessIdentity | { done: true }): Promise<string> {
  const draft = join(folder, `draft-${process.pid}-${randomBytes(6).toString('hex')}`)
  await writeFile(draft, JSON.stringify(content), { mode: 0o644 })
  return draft
}

/** Only the holder sweeps. Drafts of processes that died between writing and linking go as well. */
async function sweep(folder: string, number: number): Promise<void> {
  const names = await readdir(folder)
  const old = names.filter((name) => /^\d+$/.test(name) && Number(name) <= number - KEPT)
  const dead = names.filter((name) => name.startsWith('draft-') && !isRunning(name))
  for (const name of [...old, ...dead]) await rm(join(folder, name), { force: true })
}

function isRunning(draft: string): boolean {
  try {
    process.kill(Number(draft.split('-')[1]), 0)
    return true
  } catch {
    return false
  }
}
