/** A Postgres of its own for one run: fsync on, in a temporary folder, gone afterwards. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'

export async function startBenchServer() {
  const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-bench-'))
  const settings = { max_connections: '200', shared_buffers: '256MB', max_wal_size: '4GB' }
  const server = await startEmbedded({ dataDir, settings })
  return {
    url: server.url,
    version: server.version,
    async stop() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
