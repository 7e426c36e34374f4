/** A small note about the server last started, for those who adopt it or start it again. */
import { readFile, writeFile } from 'node:fs/promises'
import type { Folders } from './folders.ts'

export interface ServerRecord {
  readonly version?: string | undefined
  /** The TCP port, when it had one. */
  readonly port?: number | undefined
}

/** An unreadable note is as good as none: everything in it has a fallback. */
export async function readRecord(folders: Folders): Promise<ServerRecord> {
  try {
    return JSON.parse(await readFile(folders.record, 'utf8')) as ServerRecord
  } catch {
    return {}
  }
}

export async function writeRecord(folders: Folders, record: ServerRecord): Promise<void> {
  await writeFile(folders.record, `${JSON.stringify(record)}\n`, { mode: 0o600 })
}
