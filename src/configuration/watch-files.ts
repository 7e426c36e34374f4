/**
 * Tells when one of some files has changed. The folders are watched rather than the files, because editors and
 * deployments put a new file in the place of the old one; and an event is only a hint to look: what counts is whether
 * the file behind the name is another one now. A slow look from time to time covers file systems without events.
 *
 * One quiet moment after the last change, `onChange` is called once, however many files and writes there were.
 */
import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Clock, systemClock } from '../runtime/index.ts'

export interface WatchOptions {
  /** How long it must have been quiet. */
  readonly quietMs?: number
  readonly lookEveryMs?: number
  readonly clock?: Clock
}

export interface FileWatch {
  /** After it no call is made. May be called twice. */
  stop(): void
}

/** Resolves once every file has been looked at: a change after that is told. `onChange` must not throw. */
export async function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  { quietMs = 100, lookEveryMs = 5_000, clock = systemClock }: WatchOptions = {},
): Promise<FileWatch> {
  const files = [...new Set(paths.map((path) => resolve(path)))]
  let isStopped = false
  let known = await fingerprint(files)
  let cancelLook = clock.setTimer(lookEveryMs, look)
  const watchers = [...new Set(files.map(dirname))].flatMap((folder) => watchFolder(folder, hint) ?? [])
  hint()
  return {
    stop() {
      isStopped = true
      cancelLook()
      for (const watcher of watchers) watcher.close()
    },
  }

  function hint(): void {
    if (isStopped) return
    cancelLook()
    cancelLook = clock.setTimer(quietMs, look)
  }

  async function look(): Promise<void> {
    const found = await fingerprint(files)
    if (isStopped) return
    cancelLook()
    cancelLook = clock.setTimer(lookEveryMs, look)
    if (found === known) return
    known = found
    onChange()
  }
}

/** None where the folder cannot be watched: the look from time to time has to do. */
function watchFolder(folder: string, hint: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, hint)
    return watcher.on('error', () => watcher.close())
  } catch {
    return undefined
  }
}

async function fingerprint(files: readonly string[]): Promise<string> {
  const found = await Promise.all(
    files.map(async (file) => {
      const facts = await stat(file, { bigint: true }).catch(() => undefined)
      return facts && [facts.ino, facts.size, facts.mtimeNs, facts.ctimeNs].join(' ')
    }),
  )
  return found.join('\n')
}
