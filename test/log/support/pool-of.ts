import pg from 'pg'
import { onTestFinished } from 'vitest'

/** Somebody else's pool; ended with the test. */
export function poolOf(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  // The server may be quicker to end a session than the pool is.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  onTestFinished(() => pool.end())
  return pool
}
