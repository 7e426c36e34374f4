/** Files with search rules, and a database that refuses documents on demand. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { onTestFinished } from 'vitest'

export const POSTGRES = '[providers.search]\nkind = "postgres"\n'

/** Every event about a product writes it, or deletes it; that is tried for as long as a test may take. */
export const PRODUCTS = `
[observers.products]
on = "product.*"
entity = "product"
retry = { max_attempts = 1000, initial_delay = "300ms", max_delay = "500ms" }
actions = [{ type = "search", index = "products" }]
`

/** The path of a file with these rules; gone with the test. */
export function rulesFile(...parts: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-search-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'aftercommit.toml')
  writeFileSync(file, parts.join('\n'))
  return file
}

/** Documents of these positions are refused, in a way that may pass, as long as they are listed. */
export async function refusePositions(sql: pg.Client) {
  await sql.query(`
    create table public.refused (position bigint primary key);
    create function public.refuse() returns trigger language plpgsql as $$
    begin
      if exists (select from public.refused r where r.position = new.position) then
        raise exception 'not now' using errcode = '40001';
      end if;
      return new;
    end $$;
    create trigger refuse before insert on aftercommit.search_documents for each row execute function public.refuse()`)
  return {
    refuse: (position: bigint) => sql.query('insert into public.refused values ($1)', [position]),
    allow: () => sql.query('delete from public.refused'),
  }
}
