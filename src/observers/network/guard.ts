/**
 * Which addresses an observer may call. Whoever edits an observer chooses its address, and the process that calls stands
 * inside the network: so everything that is not the public internet is refused unless the operator allows it. Pure; the
 * names are resolved in resolve.ts, and every address they resolve to is judged here before a packet is sent.
 */
import ipaddr from 'ipaddr.js'
import { ObserverError } from '../observer-error.ts'

/** The operator's `[network] allow`. */
export interface NetworkRules {
  readonly names: ReadonlySet<string>
  readonly ranges: readonly Range[]
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

/** Undefined: allowed. Text: the reason why not, to follow "because". */
export type Refusal = string | undefined

/** Takes IP addresses, ranges such as `10.20.0.0/16`, and names. Throws OB012 for anything else. */
export function parseRules(allow: readonly string[]): NetworkRules {
  const names = new Set<string>()
  const ranges: Range[] = []
  allow.forEach((entry, at) => {
    const range = parseRange(entry)
    if (range !== undefined) ranges.push(range)
    else if (NAME.test(entry)) names.add(plainName(entry))
    else {
      throw new ObserverError(
        'OB012',
        `[network] allow holds ${JSON.stringify(entry.slice(0, 60))}, which is neither an address, nor a range like ` +
          '"10.20.0.0/16", nor a host name. Ports, schemes and wildcards are not part of an entry.',
        { path: ['allow', at] },
      )
    }
  })
  return { names, ranges }
}

/** What can be said of a URL before its host is resolved. `text` is judged as written: parsing forgives too much. */
export function judgeUrl(text: string, rules: NetworkRules): Refusal {
  // The parser drops tabs and line breaks and reads a backslash as a slash; readers of the configuration do not.
  if (/[\u0000-\u0020\u007f\\]/.test(text)) return 'it holds a space, a control character or a backslash'
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return 'it is not a URL'
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'only http and https are called'
  if (url.username !== '' || url.password !== '') return 'it holds a user or password, which belong into `headers`'
  if (url.port !== '' && REFUSED_PORTS.has(Number(url.port))) return `port ${url.port} belongs to another protocol`
  return judgeHost(hostOf(url), rules)
}

/** A host as the URL parser writes it: every spelling of an IPv4 address has become the plain one. */
export function judgeHost(host: string, rules: NetworkRules): Refusal {
  if (MAY_BE_ADDRESS.test(host) && ipaddr.isValid(host)) return judgeAddress(host, host, rules)
  const name = plainName(host)
  if (rules.names.has(name)) return undefined
  if (name === 'localhost' || name.endsWith('.localhost')) return 'it is this machine'
  return undefined
}

/** An address that `host` resolved to, or the host itself when it is an address. */
export function judgeAddress(address: string, host: string, rules: NetworkRules): Refusal {
  if (!ipaddr.isValid(address)) return 'it has no address that can be checked'
  const parsed = unwrap(ipaddr.parse(address))
  const kind = kindOf(parsed)
  const vouching = rules.ranges.filter((range) => isWithin(parsed, range))
  // A range around the credentials of the cloud was hardly meant to open them: they need an entry of their own.
  if (vouching.some(([base, bits]) => kind !== 'metadata' || bits === base.toByteArray().length * 8)) return undefined
  if (kind === 'public') return undefined
  // A name in the list vouches for a private network, never for a metadata service or a broadcast.
  if (VOUCHED.has(kind) && rules.names.has(plainName(host))) return undefined
  return `it leads to ${DESCRIPTIONS[kind] ?? 'an address that is not on the public internet'}`
}

function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
}

export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** Every spelling there is. The library finds out by throwing, which is slow for a name, and names are what comes. */
const MAY_BE_ADDRESS = /^[0-9a-fx.]+$|:/i
/** The last label has a letter: what is all digits is an address, if anything. */
const NAME = /^(?=.{1,253}$)(?=.*[a-z][^.]*\.?$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*\.?$/i
const VOUCHED: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'])
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  loopback: 'this machine',
  unspecified: 'this machine',
  private: 'a private network',
  uniqueLocal: 'a private network',
  carrierGradeNat: 'a private network',
  linkLocal: 'a link-local address, where clouds keep their credentials',
  metadata: 'a service of the cloud, where credentials are kept',
  multicast: 'a multicast address',
}

/** Ports that the fetch standard blocks: what listens there can be made to misread HTTP. */
const REFUSED_PORTS: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104],
  ...[109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526],
  ...[530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045],
  ...[4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
])

/**
 * AWS, Google, Azure and most others; tasks and pods of AWS; Azure; Alibaba; Oracle's classic; the same over IPv6; Google;
 * Scaleway.
 */
const METADATA: readonly Range[] = [
  ...[
    '169.254.169.254/32',
    '169.254.170.2/32',
    '169.254.170.23/32',
    '168.63.129.16/32',
    '100.100.100.200/32',
    '192.0.0.192/32',
  ],
  ...['fd00:ec2::/32', 'fd20:ce::/32', 'fd00:42::42/128'],
].map((range) => ipaddr.parseCIDR(range))
const GLOBAL_V6: Range = [ipaddr.parse('2000::'), 3]
const NAT64: Range = [ipaddr.parse('64:ff9b::'), 96]

/** IPv6 that leads to an IPv4 address where a network translates it, and the byte at which that address begins. */
const CARRIERS: readonly (readonly [Range, number])[] = [
  [ipaddr.parseCIDR('2002::/16'), 2],
  [ipaddr.parseCIDR('64:ff9b:1::/48'), 12],
  [ipaddr.parseCIDR('::/96'), 12],
]

function kindOf(address: Address): string {
  const carried = CARRIERS.find(([range]) => isWithin(address, range))
  const at = carried?.[1] ?? 0
  const target = carried === undefined ? address : new ipaddr.IPv4(address.toByteArray().slice(at, at + 4))
  if (METADATA.some((range) => isWithin(target, range))) return 'metadata'
  const range = address.range()
  if (range !== 'unicast') return range
  return address.kind() === 'ipv4' || isWithin(address, GLOBAL_V6) ? 'public' : 'reserved'
}

/** IPv4 in an IPv6 coat (`::ffff:…`, and `64:ff9b::…` of networks without IPv4) is judged as what it leads to. */
function unwrap(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6)) return address
  if (address.isIPv4MappedAddress()) return address.toIPv4Address()
  return isWithin(address, NAT64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address
}

function isWithin(address: Address, [base, bits]: Range): boolean {
  return address.kind() === base.kind() && address.match(base, bits)
}

function parseRange(entry: string): Range | undefined {
  // Only plain spellings: 010.0.0.1 is 8.0.0.1 to some and 10.0.0.1 to others.
  if (/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(entry) && /(^|\.)0\d/.test(entry)) return undefined
  if (ipaddr.isValidCIDR(entry)) {
    const [address, bits] = ipaddr.parseCIDR(entry)
    return [address, bits]
  }
  if (!/^[\d.]+$|:/.test(entry) || !ipaddr.isValid(entry)) return undefined
  const address = unwrap(ipaddr.parse(entry))
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
