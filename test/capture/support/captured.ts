/** A database with captured tables, and a ledger that row triggers written by hand keep of the same changes. */
import type pg from 'pg'
import { connect, type ServerKind, testDatabase } from '../../support/database.ts'

export interface CapturedDatabase {
  readonly url: string
  readonly client: pg.Client
  /** Statements one after the other. */
  run(...statements: string[]): Promise<void>
  events(): Promise<CapturedEvent[]>
}

export interface CapturedEvent {
  readonly type: string
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly tenant: string | null
  readonly payload: Record<string, unknown>
  readonly changes: Record<string, { old: unknown; new: unknown }> | null
  readonly previous: Record<string, unknown> | null
  readonly metadata: Record<string, unknown>
}

export async function capturedDatabase(major: ServerKind = 18): Promise<CapturedDatabase> {
  const { url } = await testDatabase({ major, migrated: true })
  const client = await connect(url)
  return {
    url,
    client,
    async run(...statements) {
      for (const statement of statements) await client.query(statement)
    },
    async events() {
      const { rows } = await client.query<CapturedEvent>(
        `select type, aggregate_type, aggregate_id, tenant, payload, changes, previous, metadata
           from aftercommit.events order by position`,
      )
      return rows
    },
  }
}

/** Makes the ledger, and a function for row triggers that fill it. */
export const LEDGER = `
  create table ledger (number bigint generated always as identity, operation text, old jsonb, new jsonb);
  create function keep_ledger() returns trigger language plpgsql as $$
  begin
    insert into ledger (operation, old, new) values (lower(tg_op),
      case when tg_op <> 'INSERT' then to_jsonb(old) end, case when tg_op <> 'DELETE' then to_jsonb(new) end);
    return null;
  end $$;`

export const keepLedgerOf = (table: string) =>
  `create trigger ledger after insert or update or delete on ${table} for each row execute function keep_ledger()`

/** What the ledger says became of each row, in the words of events: the kind and the image, per id. */
export async function ledgerById({ client }: CapturedDatabase): Promise<Map<string, string[]>> {
  const { rows } = await client.query<{ operation: string; old: Image | null; new: Image | null }>(
    'select operation, old, new from ledger order by number',
  )
  const entries = rows.flatMap(({ operation, old, new: now }): (readonly [string, Image])[] => {
    if (operation === 'insert') return [['created', now!]]
    if (operation === 'delete') return [['deleted', old!]]
    if (old!.id !== now!.id)
      return [
        ['deleted', old!],
        ['created', now!],
      ]
    return JSON.stringify(old) === JSON.stringify(now) ? [] : [['updated', now!]]
  })
  return byId(entries.map(([kind, image]) => [String(image.id), kind, image]))
}

export async function eventsById(database: CapturedDatabase): Promise<Map<string, string[]>> {
  const events = (await database.events()).filter(({ aggregate_id }) => aggregate_id !== null)
  return byId(events.map(({ type, aggregate_id, payload }) => [aggregate_id!, type.split('.').at(-1)!, payload]))
}

type Image = Record<string, unknown>

function byId(entries: readonly (readonly [string, string, Image])[]): Map<string, string[]> {
  const histories = new Map<string, string[]>()
  for (const [id, kind, image] of entries) {
    const history = histories.get(id) ?? []
    histories.set(id, [...history, `${kind} ${JSON.stringify(image)}`])
  }
  return new Map([...histories].sort(([a], [b]) => (a < b ? -1 : 1)))
}
