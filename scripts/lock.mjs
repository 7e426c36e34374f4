/** One process at a time, by a file with the id of the process that holds it. A file whose process died counts for nothing. */
import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until the file is this process's, which holds it until it ends or calls what is returned. */
export async function lock(file) {
  mkdirSync(dirname(file), { recursive: true })
  while (!take(file)) {
    if (!isHeld(file)) removeStale(file)
    await sleep(100)
  }
  const release = () => rmSync(file, { force: true })
  process.on('exit', release)
  return () => {
    process.off('exit', release)
    release()
  }
}

function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** Two processes that find the same dead holder must not remove each other's new lock, so one of them looks again. */
function removeStale(file) {
  const turn = `${file}.stale`
  try {
    mkdirSync(turn)
  } catch {
    return
  }
  try {
    if (!isHeld(file)) rmSync(file, { force: true })
  } finally {
    rmdirSync(turn)
  }
}

/** An empty file is one that its process is about to write to. */
function isHeld(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'))
    return pid === 0 || process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}
