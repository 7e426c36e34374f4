/**
 * Takes secrets out of text that is about to be read by people. Errors of drivers and HTTP clients quote the connection
 * string or URL they failed on, so the text is masked where it leaves, whoever wrote it. In doubt more is masked than
 * needed. Every step is linear in the length of the text: what is masked may come from outside.
 */
export const MASK = '***'

/**
 * `postgres://app:pw@db/x` becomes `postgres://app:***@db/x`; query parameters, `password=…` pairs, JSON members and
 * headers are masked by the name before the value.
 */
export function maskSecrets(text: string): string {
  return text
    .replace(WORD, (word) => (word.includes('://') ? word.split(URL_START).map(maskUserinfo).join('') : word))
    .replace(HEADER, `$1: ${MASK}`)
    .replace(SCHEME_AND_TOKEN, `$1 ${MASK}`)
    .replace(JSON_MEMBER, (all, name: string) => (isSecretName(name) ? `"${name}":"${MASK}"` : all))
    .replace(PAIR, (all, mark: string, name: string) => {
      return isSecretName(name) || (mark !== '' && QUERY_ONLY.has(name)) ? `${mark}${name}=${MASK}` : all
    })
}

/** Whether a value under this name must not be shown: `dbPassword`, `api_key`, `set-cookie`, `user_id`, `payload` … */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return WHOLE_NAMES.has(plain) || PARTS_OF_NAMES.some((part) => plain.includes(part))
}

const PARTS_OF_NAMES = ['password', 'passwd', 'secret', 'token', 'authorization', 'cookie', 'apikey', 'privatekey']
const WHOLE_NAMES = new Set(['pwd', 'userid', 'payload', 'credentials', 'signature'])
// In a URL these are secrets; as a field, a key is what order goes by and must stay readable.
const QUERY_ONLY = new Set(['key', 'pass', 'sig'])

const WORD = /\S+/g
const URL_START = /(?<![a-z0-9+.-])(?=[a-z][a-z0-9+.-]{0,20}:\/\/)/i
const HEADER = /\b(authorization|set-cookie|cookie) *: *[^\r\n]+/gi
// 16 letters: longer than "Basic authentication failed", shorter than any token worth stealing.
const SCHEME_AND_TOKEN = /\b(bearer|basic) +[a-z0-9+/=._~-]{16,}/gi
const JSON_MEMBER = /"([\w-]{1,64})"\s*:\s*"(?:[^"\\]|\\.)*"?/g
const PAIR = /([?&]?)(?<![\w-])([\w-]{1,64})=('[^']*'?|"[^"]*"?|[^\s&"]+)/g

function maskUserinfo(url: string): string {
  const start = url.indexOf('://') + 3
  if (start < 3) return url
  const scheme = url.slice(0, start - 3).toLowerCase()
  const rest = url.slice(start)
  const end = endOfUserinfo(rest, HTTP_SCHEMES.has(scheme))
  if (end === -1) return url
  const colon = rest.slice(0, end).indexOf(':')
  // A name alone is harmless before a Postgres server, and often a token before others.
  if (colon === -1 && scheme.startsWith('postgres')) return url
  return `${url.slice(0, start)}${colon === -1 ? '' : rest.slice(0, colon + 1)}${MASK}${rest.slice(end)}`
}

const HTTP_SCHEMES = new Set(['http', 'https', 'ws', 'wss'])
const HOST_AND_PORT = /^(?:\[[^\]]*\]|[^:]*)(?::\d*)?\W*$/

/**
 * The place of the @ that ends the userinfo. People paste passwords with raw @, / and ? into connection strings, so the
 * last @ before the query counts. Paths and queries of HTTP may well hold an @ of their own, so there the host decides.
 */
function endOfUserinfo(rest: string, isHttp: boolean): number {
  const authority = rest.split(/[/?#]/, 1)[0] ?? ''
  if (isHttp && authority.includes('@')) return authority.lastIndexOf('@')
  if (isHttp && HOST_AND_PORT.test(authority)) return -1
  const beforeQuery = rest.split(/\?[\w-]+=/, 1)[0] ?? ''
  return (beforeQuery.includes('@') ? beforeQuery : rest).lastIndexOf('@')
}
