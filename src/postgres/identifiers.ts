/**
 * Names that become part of SQL text. The schema is the one name users choose; it is checked and quoted here, once, and
 * every table, channel and advisory lock key carries it, so that two installations in one database never meet.
 */
import { createHash } from 'node:crypto'
import { AftercommitError } from '../errors.ts'

/** Postgres cuts longer identifiers silently, which would let two names become one. */
const MAX_BYTES = 63

export interface SchemaName {
  readonly name: string
  /** Ready to stand before a dot. */
  readonly quoted: string
  /** The notification channel of the bell, unquoted. */
  readonly channel: string
  /** The text to hash for an advisory lock: `hashtextextended($1::text, 0)`. */
  lockKey(kind: string): string
}

export function schemaName(name: string): SchemaName {
  checkSchemaName(name)
  return {
    name,
    quoted: quoteIdentifier(name),
    channel: shorten(`${name}_bell`),
    lockKey: (kind) => `aftercommit:${JSON.stringify(name)}:${kind}`,
  }
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The E form is used when a backslash is present, so that the text means the same under any server setting. */
export function quoteLiteral(text: string): string {
  const escaped = text.replaceAll("'", "''")
  return text.includes('\\') ? `E'${escaped.replaceAll('\\', '\\\\')}'` : `'${escaped}'`
}

/** Keeps a generated identifier within the limit; the hash of the whole name keeps long ones apart. */
export function shorten(identifier: string): string {
  if (Buffer.byteLength(identifier) <= MAX_BYTES) return identifier
  const hash = createHash('sha256').update(identifier).digest('hex').slice(0, 16)
  return `${cutBytes(identifier, MAX_BYTES - hash.length - 1)}_${hash}`
}

function cutBytes(text: string, bytes: number): string {
  let cut = ''
  for (const character of text) {
    if (Buffer.byteLength(cut + character) > bytes) break
    cut += character
  }
  return cut
}

function checkSchemaName(name: string): void {
  const problem = schemaNameProblem(name)
  if (problem === undefined) return
  throw new AftercommitError(
    'BAD_OPTION',
    `The schema name ${JSON.stringify(name)} ${problem}, so nothing was connected. Choose another \`schema\`.`,
  )
}

function schemaNameProblem(name: string): string | undefined {
  if (typeof name !== 'string' || name === '') return 'is empty'
  if (Buffer.byteLength(name) > MAX_BYTES) return `is longer than ${MAX_BYTES} bytes, which Postgres would cut`
  if (name.includes('\u0000') || /\p{Surrogate}/u.test(name)) return 'contains a character that Postgres cannot hold'
  // The name is written into the dollar-quoted bodies of our SQL functions, where nothing can be escaped.
  if (name.includes('$')) return 'contains a dollar sign'
  if (/^pg_/i.test(name) || name === 'information_schema') return 'is reserved by Postgres'
  return undefined
}
