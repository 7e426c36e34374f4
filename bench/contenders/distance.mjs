/** Puts a server at a distance that can be changed while processes run. */
import pg from 'pg'
import { startChild } from './child.mjs'

export async function openDistance(serverUrl) {
  const { host, port, user, password } = new pg.Client(serverUrl)
  const dial = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  const child = await startChild('./proxy-process.mjs', { dial })
  const ownPort = await child.ask('port')
  const credentials = password ? `${encodeURIComponent(user)}:${encodeURIComponent(password)}` : user
  return {
    /** The address of a database of this server, from far away. */
    through: (url) => `postgres://${credentials}@127.0.0.1:${ownPort}/${new pg.Client(url).database}`,
    setRoundTrip: (ms) => child.ask('setRoundTrip', ms),
    close: () => child.close(),
  }
}
