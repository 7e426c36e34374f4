/**
 * A database of its own for each contender, so that none reads another's rows and each has its own settings. `copyOf` is
 * the name of another, to which nobody may be connected.
 */
import pg from 'pg'

export async function createBenchDatabase(serverUrl, name, { jit = 'on', copyOf } = {}) {
  const database = `bench_${name}`
  const admin = new pg.Client(serverUrl)
  await admin.connect()
  await admin.query(`drop database if exists ${database} with (force)`)
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

/** The same server, another database. */
export function toDatabase(url, database) {
  return url.replace(/^(\w+:\/\/[^/?]*)(\/[^?]*)?/, `$1/${database}`)
}
