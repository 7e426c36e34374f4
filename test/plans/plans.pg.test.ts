/**
 * A running product's statements keep to plans whose cost does not grow with the tables: with few and many rows, missing,
 * old and fresh statistics, JIT on, and in every plan_cache_mode. The statements are caught as the product sends them; those
 * inside functions are checked too. 10 million rows are simulated in the catalog, see support/situations.ts.
 */
import { expect, test } from 'vitest'
import { connect, hasSystemPostgres, testDatabase } from '../support/database.ts'
import { captureStatements } from './support/capture.ts'
import { offences, openReplay, type UsedPlan } from './support/replay.ts'
import { playScenario } from './support/scenario.ts'
import { BOUNDED, GROWING, growingRelations, NOT_PLAYED, partialIndexes, SITUATIONS } from './support/situations.ts'

const servers = [18, 14, ...(hasSystemPostgres() ? (['system'] as const) : [])] as const
const MODES = ['auto', 'force_generic_plan', 'force_custom_plan']

/** Statements that may read more, and why. */
const ACCEPTED: readonly { readonly text: RegExp; readonly why: string }[] = [
  { text: /delivery_workers .* select distinct d\.worker/, why: 'once when a worker starts: every claim is looked at' },
  {
    text: /deliveries d set token = null.* where c\.token is not null/,
    why: 'once when an epoch begins: every claim ends',
  },
  { text: /^select key from \S+letters .* union select key/, why: 'once per lease: all parked keys of the owner' },
  { text: /^select l\.name, h\.key /, why: 'stops at a limit; reads the open dead letters when there are few' },
  { text: /owner from \S+letters where kind = 'subscription'/, why: 'an index that holds marked letters only' },
  { text: /^select id::text as letter, key, parks/, why: 'an index that holds marked letters only' },
  { text: /from \S+parked where owner = \S+ and key = /, why: 'the dead letters of one key' },
  { text: /^select count\(\*\)::text as count from \S+letters/, why: 'an operator counts' },
  { text: /payload #>> '\{event,id\}'/, why: 'an operator asks about one event' },
  { text: /^select owner as observer, attempt/, why: 'an operator asks about one event' },
  { text: /^select found\.\* from \(values/, why: 'an operator lists' },
  { text: /^select l\.id::text as letter/, why: 'an operator lists' },
  { text: /^update \S+letters l set status/, why: 'an operator redrives' },
  { text: /as lag, \(select l\.process/, why: 'counts at most 100,000 rows that wait' },
  { text: /from \S+events where id = \S+ limit/, why: 'sorts the events of one id' },
]

test.each(servers.map((major) => ({ major })))(
  'no statement of a running product scans or sorts a growing table on Postgres $major',
  async ({ major }) => {
    const { url } = await testDatabase({ major, migrated: true })
    const sql = await connect(url)
    await sql.query(`select aftercommit.declare_stream('lamp', true)`)
    const { statements } = captureStatements()
    await playScenario(url)
    const { rows } = await sql.query(`select proname as name from pg_proc
      where pronamespace = 'aftercommit'::regnamespace and array_to_string(proconfig, ' ') like '%enable_seqscan%'`)
    const steady = new Set<string>(rows.map(({ name }) => name))
    const partial = await partialIndexes(sql)
    const replay = await openReplay(url)
    const found = new Map<string, string>()
    for (const situation of SITUATIONS) {
      await situation.enter(sql)
      const growing = await growingRelations(sql, situation)
      for (const mode of MODES) {
        await replay.use(mode)
        for (const statement of statements.values()) {
          const plans = await replay.play(statement)
          // With few rows only a plan that is kept can do harm: later, when there are many.
          const counts = (plan: UsedPlan) =>
            !situation.isSmall || (plan.inside === undefined ? statement.isPrepared : steady.has(plan.inside))
          for (const plan of plans.filter(counts)) {
            const wrong = [
              ...offences(plan.tree, { growing, partial }),
              ...(plan.isCompiled ? ['compiled by JIT'] : []),
            ]
            if (wrong.length > 0) found.set(oneLine(plan.text), `${wrong.join(', ')} (${situation.name}, ${mode})`)
          }
        }
      }
    }
    const refused = [...found].filter(([text]) => !ACCEPTED.some((accepted) => accepted.text.test(text)))
    expect(refused.map(([text, why]) => `${why}: ${text}`)).toEqual([])
    const sent = [...[...statements.values()].map(({ text }) => oneLine(text)), ...found.keys()]
    expect(ACCEPTED.filter(({ text }) => !sent.some((one) => text.test(one)))).toEqual([])
  },
)

test('each table is known to grow or to stay small, and those that grow are played with many rows', async () => {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const { rows } = await sql.query(`select relname as name from pg_class
    where relnamespace = 'aftercommit'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`)
  expect(rows.map(({ name }) => name)).toEqual([...Object.keys(GROWING), ...NOT_PLAYED, ...BOUNDED].sort())
})

function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}
