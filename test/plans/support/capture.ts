/**
 * The statements that a running product sends, each once with the parameters of its first call. They are taken where they
 * leave the process, so a new statement is among them as soon as the scenario uses what sends it.
 */
import pg from 'pg'
import { onTestFinished, vi } from 'vitest'

export interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
  /** The server keeps its plan: the product prepares it under a name. */
  readonly isPrepared: boolean
}

interface Sent {
  readonly text?: string
  readonly name?: string
  readonly values?: readonly unknown[]
}

export function captureStatements(): { readonly statements: ReadonlyMap<string, Statement> } {
  const statements = new Map<string, Statement>()
  const clients = pg.Client.prototype as unknown as { query(...given: unknown[]): unknown }
  const query = clients.query
  const spy = vi.spyOn(clients, 'query').mockImplementation(function (this: unknown, ...given) {
    if (isOurs(this as pg.Client)) note(toSent(given))
    return query.apply(this, given)
  })
  onTestFinished(() => spy.mockRestore())

  function note({ text = '', name = '', values = [] }: Sent): void {
    for (const part of values.length > 0 ? [text] : text.split(/;\s*/)) {
      const wanted = /aftercommit"?\./.test(part) && /^\s*(select|with|update|insert|delete)/i.test(part)
      if (!wanted || statements.has(shapeOf(part))) continue
      statements.set(shapeOf(part), { text: part, values, isPrepared: name !== '' })
    }
  }
  return { statements }
}

function isOurs(client: pg.Client): boolean {
  const { application_name: name } = Reflect.get(client, 'connectionParameters') as { application_name?: string }
  return name?.startsWith('aftercommit:') === true
}

function toSent([first, second]: readonly unknown[]): Sent {
  if (typeof first !== 'string') return first as Sent
  return { text: first, values: Array.isArray(second) ? second : [] }
}

/** Statements without parameters carry positions in their text. */
function shapeOf(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\b\d+\b/g, '0')
}
