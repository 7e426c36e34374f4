/** Many sessions that write at random: think, roll back, undo a savepoint, prepare, commit. */
import { setTimeout as think } from 'node:timers/promises'
import type { Play, Writer } from './play.ts'
import { beginSilently, prepare } from './two-phase.ts'

export interface LoadOptions {
  readonly writers: number
  readonly transactionsEach: number
  /** Called when half of the transactions are done. */
  readonly halfway?: () => void
}

/** Returns how many transactions rolled back. */
export async function runLoad(game: Play, { writers, transactionsEach, halfway }: LoadOptions): Promise<number> {
  const half = (writers * transactionsEach) / 2
  let done = 0
  let rolledBack = 0
  const run = async (writer: Writer) => {
    for (let i = 0; i < transactionsEach; i++) {
      if (!(await playTransaction(game, writer))) rolledBack++
      if (++done === half) halfway?.()
    }
  }
  const sessions = await Promise.all(Array.from({ length: writers }, () => game.openWriter()))
  await Promise.all(sessions.map(run))
  return rolledBack
}

async function playTransaction(game: Play, writer: Writer): Promise<boolean> {
  // Transactions that are prepared hand their locks over, and must not ring.
  const isPrepared = Math.random() < 0.1
  await (isPrepared ? beginSilently(writer) : writer.begin())
  const events = 1 + Math.floor(Math.random() * 3)
  for (let i = 0; i < events; i++) {
    await think(Math.random() * 10)
    await writer.emit()
  }
  if (Math.random() < 0.05) {
    await writer.savepoint()
    await writer.emit()
    await think(Math.random() * 10)
    await writer.rollbackToSavepoint()
    await writer.emit()
  }
  await think(Math.random() * 20)
  const commits = Math.random() >= 0.2
  if (isPrepared) {
    const prepared = await prepare(writer, game.url, game.ledger)
    await think(Math.random() * 10)
    await (commits ? prepared.commit(game.sql) : prepared.rollback(game.sql))
    return commits
  }
  await (commits ? writer.commit() : writer.rollback())
  return commits
}
