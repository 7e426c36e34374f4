/**
 * A database of its own for each contender, so that none reads another's rows and each has its own settings. `copyOf` is
 * the name of another, whose connections end.
 */
import pg from 'pg'

export async function createBenchDatabase(serverUrl, name, { jit = 'on', copyOf } = {}) {
  const database = `bench_${name}`
  const admin = new pg.Client(serverUrl)
  // A journey that failed leaves it open until the server stops.
  admin.on('error', () => {})
  await admin.connect()
  await admin.query(`drop database if exists ${database} with (force)`)
  if (copyOf !== undefined) await endConnectionsTo(admin, `bench_${copyOf}`)
  await admin.query(`create database ${database}${copyOf === undefined ? '' : ` template bench_${copyOf}`}`)
  if (jit === 'off') await admin.query(`alter database ${database} set jit = off`)
  return {
    url: toDatabase(serverUrl, database),
    async close() {
      await admin.query(`drop database if exists ${database} with (force)`)
      await admin.end()
    },
  }
}

/** Of autovacuum too. */
async function endConnectionsTo(admin, database) {
  await admin.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [database])
}

/** The same server, another database. */
export function toDatabase(url, database) {
  return url.replace(/^(\w+:\/\/[^/?]*)(\/[^?]*)?/, `$1/${database}`)
}
