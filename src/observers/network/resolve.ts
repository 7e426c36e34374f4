/**
 * Names to addresses without the trap of `dns.lookup`: that one runs on Node's four threads, so that a few dead names
 * keep everybody else's healthy ones waiting. Asked are, in this order: the hosts file; the name servers, over sockets
 * of our own and with a short patience; and only when those know nothing, the system, at most two names at a time. Where nobody
 * knows the name, the root of all names tells a name server that is away from a name that is dead.
 */
import { lookup, Resolver } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { createGate } from './gate.ts'
import { plainName } from './guard.ts'
import { NAME_SERVER_AWAY } from './local-fault.ts'

export interface ResolvedAddress {
  readonly address: string
  readonly family: 4 | 6
}

export interface NameResolver {
  /** At least one address, or an error with the `code` of node:dns. */
  resolve(name: string): Promise<readonly ResolvedAddress[]>
  close(): void
}

export interface ResolverOptions {
  /** `address:port` of name servers, in place of the system's. */
  readonly servers?: readonly string[]
  readonly hostsFile?: string
}

export function createResolver({ servers, hostsFile = HOSTS_FILE }: ResolverOptions = {}): NameResolver {
  const resolver = new Resolver({ timeout: PATIENCE_MS, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  const probe = new Resolver({ timeout: PROBE_MS, tries: 1 })
  if (servers !== undefined) probe.setServers(servers)
  let asking: Promise<boolean> | undefined
  const underWay = new Map<string, Promise<readonly ResolvedAddress[]>>()
  const system = createGate(SYSTEM_LOOKUPS)

  async function find(name: string): Promise<readonly ResolvedAddress[]> {
    const known = await readHosts(hostsFile, name)
    if (known.length > 0) return known
    const answers = await Promise.all([ask(resolver, name, 4), ask(resolver, name, 6)])
    const found = answers.flatMap(({ addresses }) => addresses)
    if (found.length > 0) return found
    // Silence is an answer too: who waited for the name servers once does not wait for them again on a thread.
    const silence = answers.find(({ code }) => code === 'ETIMEOUT' || code === 'ECANCELLED')
    if (silence !== undefined) throw nameError(name, (await isAway()) ? NAME_SERVER_AWAY : silence.code)
    const free = await system.enter()
    try {
      return await lookUp(name)
    } catch (error) {
      const isUnasked = UNASKED.has(String((error as { code?: unknown }).code))
      throw isUnasked && (await isAway()) ? nameError(name, NAME_SERVER_AWAY) : error
    } finally {
      free()
    }
  }

  /** Every name server answers for the root, from memory; an answer that refuses is one too. */
  function isAway(): Promise<boolean> {
    asking ??= new Promise<boolean>((resolve) => {
      probe.resolveNs('.', (error) => resolve(error !== null && UNANSWERED.has(error.code ?? '')))
    }).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    resolve(host) {
      const name = plainName(host)
      const pending = underWay.get(name)
      if (pending !== undefined) return pending
      const finding = find(name).finally(() => underWay.delete(name))
      underWay.set(name, finding)
      return finding
    },
    close() {
      resolver.cancel()
      probe.cancel()
    },
  }
}

const PATIENCE_MS = 2_000
const PROBE_MS = 1_500
/** How the system says that it could not ask. */
const UNASKED: ReadonlySet<string> = new Set(['EAI_AGAIN', 'EBUSY', 'EMFILE'])
/** How c-ares says that no server answered, or that it could not ask one. */
const UNANSWERED: ReadonlySet<string> = new Set(['ETIMEOUT', 'ECONNREFUSED', 'ENOMEM', 'ECANCELLED'])
const SYSTEM_LOOKUPS = 2
const HOSTS_FILE =
  process.platform === 'win32' ? `${process.env.SystemRoot}\\System32\\drivers\\etc\\hosts` : '/etc/hosts'

/** Lines of `address name name …`; `#` begins a comment. Read each time: new connections are rare, edits must count. */
async function readHosts(file: string, name: string): Promise<ResolvedAddress[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/)
    return names.some((known) => plainName(known) === name) ? [toAddress(address)] : []
  })
}

interface Answer {
  readonly addresses: readonly ResolvedAddress[]
  readonly code: string
}

function ask(resolver: Resolver, name: string, family: 4 | 6): Promise<Answer> {
  return new Promise((resolve) => {
    const take = (error: NodeJS.ErrnoException | null, addresses: string[] = []) =>
      resolve({ addresses: addresses.map(toAddress), code: error?.code ?? 'ENODATA' })
    if (family === 4) resolver.resolve4(name, take)
    else resolver.resolve6(name, take)
  })
}

function lookUp(name: string): Promise<readonly ResolvedAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, addresses) => {
      if (error) reject(nameError(name, error.code ?? 'ENOTFOUND'))
      else resolve(addresses.map(({ address }) => toAddress(address)))
    })
  })
}

function toAddress(address: string): ResolvedAddress {
  return { address, family: address.includes(':') ? 6 : 4 }
}

function nameError(name: string, code: string): Error {
  return Object.assign(new Error(`the name ${name} could not be resolved (${code})`), { code })
}
