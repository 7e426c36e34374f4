import fc from 'fast-check'
import type pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { compilePatterns, patternsToSql } from '../../src/events/index.ts'
import { connect, serverUrl } from '../support/database.ts'
import { names, patterns } from './pattern-samples.ts'

describe.each([18, 14] as const)('patterns on Postgres %i', (major) => {
  let client: pg.Client

  beforeEach(async () => {
    client = await connect(serverUrl(major))
  })

  it('choose the same events in Postgres as in JavaScript', async () => {
    const cases = fc.sample(fc.tuple(fc.array(patterns, { minLength: 1, maxLength: 3 }), names), 3000)
    const { rows } = await client.query<{ chosen: boolean }>(
      `select name ~ pattern as chosen
         from unnest($1::text[], $2::text[]) with ordinality as cases(name, pattern, number)
        order by number`,
      [cases.map(([, name]) => name), cases.map(([list]) => patternsToSql(list))],
    )
    const wrong = cases.filter(([list, name], at) => rows[at]?.chosen !== compilePatterns(list)(name))
    expect(rows).toHaveLength(3000)
    expect(wrong).toEqual([])
    expect(rows.some((row) => row.chosen) && rows.some((row) => !row.chosen)).toBe(true)
  })
})
