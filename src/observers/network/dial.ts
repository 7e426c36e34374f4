/**
 * Opens connections, and is the only place that does. A name is resolved once; every address it has is judged; the
 * connection is made to one of exactly those addresses, so a name that changes its mind between check and call changes
 * nothing; and the other end is looked at once more before a byte is sent.
 */
import type { LookupFunction } from 'node:net'
import { isIP } from 'node:net'
import type { buildConnector } from 'undici'
import { judgeAddress, judgeHost, type NetworkRules, type Refusal } from './guard.ts'
import type { NameResolver, ResolvedAddress } from './resolve.ts'

export interface Dialer {
  readonly connect: buildConnector.connector
  /** Connections that are open now. */
  readonly open: number
}

export interface DialOptions {
  /** That of undici, which is loaded when something is to be sent. */
  readonly buildConnector: typeof buildConnector
  readonly resolver: NameResolver
  /** Null for the operator's own addresses: anything may be called. */
  readonly rules: NetworkRules | null
  readonly timeoutMs: number
  /** The certificate authority to trust, in place of the usual ones. */
  readonly ca?: string
}

/** The address may not be called. Never worth another attempt: it takes a change of the configuration. */
export class RefusedAddress extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'RefusedAddress'
  }
}

export function createDialer({ buildConnector, resolver, rules, timeoutMs, ca }: DialOptions): Dialer {
  let open = 0
  const lookup: LookupFunction = (name, { all }, callback) => {
    findAddresses(name).then(
      (addresses) => {
        const [first] = addresses
        if (all) callback(null, [...addresses])
        else callback(null, first?.address ?? '', first?.family)
      },
      (error) => callback(error, ''),
    )
  }

  async function findAddresses(name: string): Promise<readonly ResolvedAddress[]> {
    const addresses = await resolver.resolve(name)
    for (const { address } of addresses) assertAllowed(judge(address, name))
    return addresses
  }

  function judge(address: string, host: string): Refusal {
    return rules === null ? undefined : judgeAddress(address, host, rules)
  }

  const base = buildConnector({ lookup, timeout: timeoutMs, ...(ca === undefined ? {} : { ca }) })

  return {
    connect(options, callback) {
      // Node does not look an address up, so a host that is one has to be judged here.
      const host = isIP(options.hostname) ? options.hostname : options.hostname.replace(/^\[|\]$/g, '')
      const refusal = rules === null ? undefined : judgeHost(host, rules)
      if (refusal !== undefined) {
        queueMicrotask(() => callback(new RefusedAddress(refusal), null))
        return
      }
      base(options, (error, socket) => {
        if (error) {
          callback(error, null)
          return
        }
        const wrongEnd = judge(socket.remoteAddress ?? '', host)
        if (wrongEnd !== undefined) {
          socket.destroy()
          callback(new RefusedAddress(wrongEnd), null)
          return
        }
        open++
        socket.once('close', () => open--)
        callback(null, socket)
      })
    },
    get open() {
      return open
    },
  }
}

function assertAllowed(refusal: Refusal): void {
  if (refusal !== undefined) throw new RefusedAddress(refusal)
}
