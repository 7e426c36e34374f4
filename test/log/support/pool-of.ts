import pg from 'pg'
import { onTestFinished } from 'vitest'

/** The pool of an application; ended with the test. */
export function poolOf(url: string, max: number): pg.Pool {
  const pool = openPool(url, max)
  onTestFinished(() => pool.end())
  return pool
}

/** For a caller that ends the pool itself. */
export function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  // The database is dropped when the pool has not ended its last sessions yet, and an error without a listener fails the run.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  return pool
}
