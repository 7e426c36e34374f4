/** What may stand in a header. The same rules for what is written in a file and for what a template makes of an event. */

/** Undefined: fine. Text: what is wrong with the name, to follow "The header …". */
export function headerNameProblem(name: string): string | undefined {
  if (!TOKEN.test(name) || name.length > 200) return 'has a name that HTTP does not allow'
  const plain = name.toLowerCase()
  if (OURS.has(plain)) return 'is set by the signature; give `secret` and it is sent'
  if (CONNECTION.has(plain) || plain.startsWith('proxy-')) return 'belongs to the connection and cannot be set'
  return undefined
}

export function headerValueProblem(value: string): string | undefined {
  if (value.length > LONGEST) return `is longer than ${LONGEST} characters`
  if (!FIELD_VALUE.test(value)) return 'holds a line break, a control character or a letter outside of Latin-1'
  return undefined
}

const LONGEST = 8_192
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const FIELD_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/
const OURS: ReadonlySet<string> = new Set(['webhook-id', 'webhook-timestamp', 'webhook-signature'])
const CONNECTION: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect', 'te', 'trailer'],
])
