/**
 * A bad network on demand: a TCP proxy in front of Postgres whose behaviour can be changed while connections are open.
 */
import { createServer, connect as dial, type Socket } from 'node:net'
import pg from 'pg'
import { onTestFinished } from 'vitest'

export interface Proxy {
  readonly url: string
  /** Connections accepted since the start. */
  readonly accepted: number
  pass(): void
  /** Every piece of data arrives `ms` later, in order. */
  delay(ms: number): void
  /** Data is held back; `pass` lets it go on. */
  stall(): void
  /** Data vanishes and nobody is told. */
  blackhole(): void
  /**
   * Connections are reset, new ones too, and the server never hears of it: its sessions stay, as when a firewall forgets
   * the connections of a host.
   */
  lose(): void
  /** What the open connections send vanishes and nobody is told; new ones work, as behind a firewall that forgot the others. */
  strand(): void
  /** Connections are reset, new ones too. */
  reset(): void
  /** Connections are reset after the server has sent `bytes` more. */
  cutAfter(bytes: number): void
  /** COMMIT reaches the server; the connection is reset instead of passing on the answer. */
  cutOnCommit(): void
  /** The startup of every new connection is answered with a fatal error. */
  reject(sqlstate: string, message: string): void
  switchUpstream(url: string): void
  /** Ends all open connections, as a failover does. */
  dropAll(): void
  close(): Promise<void>
}

type Mode =
  | { kind: 'pass' | 'stall' | 'blackhole' | 'lose' | 'reset' | 'cutOnCommit' }
  | { kind: 'delay'; ms: number }
  | { kind: 'cutAfter'; bytes: number }
  | { kind: 'reject'; answer: Buffer }

interface Link {
  client: Socket
  server: Socket
  committing: boolean
  stranded: boolean
  held: { to: Socket; chunk: Buffer }[]
}

export async function createProxy(url: string): Promise<Proxy> {
  const links = new Set<Link>()
  /** Sessions of the server whose clients are gone. */
  const kept = new Set<Socket>()
  let upstream = addressOf(url)
  let mode: Mode = { kind: 'pass' }
  let accepted = 0

  const listener = createServer((client) => {
    accepted += 1
    const link: Link = { client, server: dial(upstream.dial), committing: false, stranded: false, held: [] }
    links.add(link)
    client.on('data', (chunk) => forward(link, link.server, chunk))
    link.server.on('data', (chunk) => forward(link, client, chunk))
    for (const [from, to] of [
      [client, link.server],
      [link.server, client],
    ] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => {
        // On a lost path not even the end of a connection gets through.
        if (link.stranded || mode.kind === 'blackhole' || mode.kind === 'lose') kept.add(link.server)
        else to.destroy()
        links.delete(link)
      })
    }
    if (mode.kind === 'reset' || mode.kind === 'lose') cut(link)
  })

  function forward(link: Link, to: Socket, chunk: Buffer): void {
    const toClient = to === link.client
    if (link.stranded) return
    if (mode.kind === 'stall') link.held.push({ to, chunk })
    else if (mode.kind === 'delay') setTimeout(() => to.write(chunk), mode.ms)
    else if (mode.kind === 'reject') link.client.end(mode.answer)
    else if (isFatal(link, toClient, chunk)) cut(link)
    else if (mode.kind !== 'blackhole') to.write(chunk)
  }

  function isFatal(link: Link, toClient: boolean, chunk: Buffer): boolean {
    if (mode.kind === 'reset') return true
    if (mode.kind === 'cutAfter' && toClient) {
      mode.bytes -= chunk.length
      return mode.bytes < 0
    }
    if (mode.kind !== 'cutOnCommit') return false
    if (toClient) return link.committing
    link.committing ||= /commit\0/i.test(chunk.toString('latin1'))
    return false
  }

  function setMode(next: Mode): void {
    mode = next
    if (next.kind === 'reset') for (const link of links) cut(link)
    if (next.kind === 'lose') for (const link of links) link.client.resetAndDestroy()
    if (next.kind !== 'pass') return
    for (const link of links) for (const { to, chunk } of link.held.splice(0)) to.write(chunk)
  }

  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as { port: number }
  const dropAll = () => links.forEach(cut)
  const close = async () => {
    listener.close()
    dropAll()
    for (const server of kept) server.destroy()
  }
  onTestFinished(close)

  return {
    url: `postgres://${upstream.credentials}@127.0.0.1:${port}/${upstream.database}`,
    get accepted() {
      return accepted
    },
    pass: () => setMode({ kind: 'pass' }),
    delay: (ms) => setMode({ kind: 'delay', ms }),
    stall: () => setMode({ kind: 'stall' }),
    blackhole: () => setMode({ kind: 'blackhole' }),
    lose: () => setMode({ kind: 'lose' }),
    strand() {
      for (const link of links) link.stranded = true
    },
    reset: () => setMode({ kind: 'reset' }),
    cutAfter: (bytes) => setMode({ kind: 'cutAfter', bytes }),
    cutOnCommit: () => setMode({ kind: 'cutOnCommit' }),
    reject: (sqlstate, message) => setMode({ kind: 'reject', answer: fatal(sqlstate, message) }),
    switchUpstream(next) {
      upstream = addressOf(next)
    },
    dropAll,
    close,
  }
}

function cut(link: Link): void {
  link.client.resetAndDestroy()
  link.server.destroy()
}

/** Where a URL leads, socket folders included. */
export function addressOf(url: string) {
  const { host, port, user, password, database } = new pg.Client(url)
  const credentials = password ? `${encodeURIComponent(user!)}:${encodeURIComponent(password)}` : user
  const dialTo = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  return { dial: dialTo, credentials, database, host, port, user, password }
}

/** An ErrorResponse: type, length, then fields of one letter and a zero-terminated text. */
function fatal(sqlstate: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${sqlstate}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
