/**
 * Where throwaway servers keep their data: in memory where there is enough of it. A database of its own for every test is
 * some 300 files, and making those takes ten times as long on a disk.
 */
import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
const ENOUGH_BYTES = 4 * 1024 ** 3

export function memoryFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ENOUGH_BYTES ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
