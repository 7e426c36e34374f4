/**
 * Tells when files are not what was read of them any more. What counts is what they hold: an event of the file system is
 * only a hint to look, and a slow look from time to time covers file systems without events. The folders are watched
 * rather than the files, because editors and deployments put a new file in the place of the old one.
 *
 *   as known ──a hint, and then a quiet moment──▶ looked at ──they differ──▶ told ──`know`──▶ as known
 *                                                                             └── otherwise told again at the slow look
 *
 * It is told once at a time: while `onChange` is under way nothing is looked at, and afterwards everything is.
 */
import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Clock, systemClock } from '../runtime/index.ts'
import { type FileStamps, readStamped } from './stamp.ts'

export interface WatchOptions {
  /** How long it must have been quiet: a file that is written piece by piece is not looked at in between. */
  readonly quietMs?: number
  readonly lookEveryMs?: number
  readonly clock?: Clock
}

export interface FileWatch {
  /** What was read of which files; from now on these are watched. Looked at soon: they may have changed since. */
  know(stamps: FileStamps): void
  /** After it no call is made. May be called twice. */
  stop(): void
}

/** `onChange` must not reject. It says with `know` what it has read; as long as it does not, it is called again. */
export function watchFiles(
  stamps: FileStamps,
  onChange: () => Promise<void>,
  { quietMs = 100, lookEveryMs = 5_000, clock = systemClock }: WatchOptions = {},
): FileWatch {
  let isStopped = false
  let isLooking = false
  /** A look was due while another was under way. */
  let isDue = false
  let known: FileStamps = new Map()
  let names = new Set<string>()
  let watchers: FSWatcher[] = []
  let quiet: (() => void) | undefined
  let cancelSlow = clock.setTimer(lookEveryMs, look)
  know(stamps)
  return { know, stop }

  function know(next: FileStamps): void {
    if (isStopped) return
    known = next
    names = new Set([...known.keys()].map((path) => basename(path)))
    // Opened anew: the folder of that name may be another one by now.
    close()
    watchers = [...new Set([...known.keys()].map(dirname))].flatMap((folder) => watchFolder(folder, hint) ?? [])
    lookSoon()
  }

  function stop(): void {
    isStopped = true
    quiet?.()
    cancelSlow()
    close()
  }

  function close(): void {
    for (const watcher of watchers) watcher.close()
    watchers = []
  }

  /** Others in the folder may never be quiet. They matter all the same: ours may be links, and what they lead to moves. */
  function hint(name: string | null): void {
    if (isStopped) return
    if (quiet === undefined || name === null || names.has(name)) lookSoon()
  }

  function lookSoon(): void {
    quiet?.()
    quiet = clock.setTimer(quietMs, look)
  }

  async function look(): Promise<void> {
    quiet?.()
    quiet = undefined
    cancelSlow()
    cancelSlow = clock.setTimer(lookEveryMs, look)
    if (isLooking) {
      isDue = true
      return
    }
    isLooking = true
    const looked = known
    const differs = await isOther(looked)
    if (differs && !isStopped && known === looked) await onChange()
    isLooking = false
    if (isDue && !isStopped) lookSoon()
    isDue = false
  }
}

/** None where the folder cannot be watched: the look from time to time has to do. */
function watchFolder(folder: string, hint: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => hint(name))
    return watcher.on('error', () => watcher.close())
  } catch {
    return undefined
  }
}

async function isOther(known: FileStamps): Promise<boolean> {
  for (const [path, stamp] of known) {
    if ((await readStamped(path)).stamp !== stamp) return true
  }
  return false
}
