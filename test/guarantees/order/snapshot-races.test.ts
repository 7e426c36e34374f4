/** Commits that fall between the statements of a reader: none of them is skipped. */
import { describe, expect, test } from 'vitest'
import { findLogObjects } from '../../../src/log/frontier-statements.ts'
import { openLog, SERVERS } from '../../log/support/open-log.ts'
import { connect } from '../../support/database.ts'
import { createHandReader, type Messenger, oneByOne } from '../support/by-hand.ts'
import { isRight, type Players, playSchedules } from '../support/schedules.ts'

describe.each(SERVERS)('a commit on Postgres $major', ({ major }) => {
  test.each([
    ['between the reading of the head and the scan of the locks', 'pg_locks'],
    ['between the scan of the locks and the new read', 'order by position'],
  ])('%s is not skipped', async (_, statement) => {
    const { first, second, reader, objects } = await gather(major)
    let atHole = false
    const messenger = oneByOne(reader, async (text) => {
      if (!atHole || !text.includes(statement)) return
      atHole = false
      await first.query('commit')
    })
    const hand = createHandReader(messenger, objects, 0n)
    for (const sql of [first, second]) {
      await sql.query('begin')
      await sql.query(`select aftercommit.emit('game.played', null, null, '{}')`)
    }
    await second.query('commit')
    await hand.round()
    expect(hand.read).toEqual([])
    atHole = true
    await hand.round()
    await hand.round()
    expect(atHole).toBe(false)
    expect(hand.read).toEqual([1n, 2n])
  })

  const games = [
    { script: 'the first commits last', behindHole: false },
    { script: 'the first rolls back last', behindHole: false },
    { script: 'the first commits last', behindHole: true },
  ] as const
  test.each(games)('is read in order wherever it falls: $script, behind a hole: $behindHole', async (game) => {
    const outcomes = await playSchedules(await gather(major), game)
    expect(outcomes.length).toBeGreaterThan(300)
    expect(outcomes.filter((outcome) => !isRight(outcome))).toEqual([])
  })
})

describe('a commit that falls between the statements of a careless reader', () => {
  test.each([
    ['scans the locks before it reads the head', { spoil: scanFirst, behindHole: true }],
    ['reads all of it in one snapshot', { spoil: oneSnapshot, behindHole: false }],
  ])('is lost in these same games, if the reader %s', async (_, careless) => {
    const outcomes = await playSchedules(await gather(18), { script: 'the first commits last', ...careless })
    const wrong = outcomes.filter((outcome) => !isRight(outcome))
    expect(wrong.length).toBeGreaterThan(0)
    // Each of them is a loss, for ever: the reader has passed the position of the first writer.
    for (const { read, committed } of wrong) expect(read).toEqual(committed.toSpliced(-2, 1))
  })
})

/** Sends the second and the third statement of an observation the other way round. */
function scanFirst(messenger: Messenger): Messenger {
  return {
    ...messenger,
    async queryMany(text) {
      const [begin, head, holders, ...rest] = text.split(';')
      if (rest.length === 0) return messenger.queryMany(text)
      const [begun, scanned, read, ...others] = await messenger.queryMany([begin, holders, head, ...rest].join(';'))
      return [begun!, read!, scanned!, ...others]
    },
  }
}

function oneSnapshot(messenger: Messenger): Messenger {
  const queryMany = (text: string) => messenger.queryMany(text.replace('read committed', 'repeatable read'))
  return { ...messenger, queryMany }
}

async function gather(major: 18 | 14): Promise<Players> {
  const { url, sql } = await openLog({ major })
  const [reader, first, second] = await Promise.all([connect(url), connect(url), connect(url)])
  const objects = await findLogObjects({
    schema: 'aftercommit',
    query: async (text, values) => {
      const { rows, rowCount } = await sql.query(text, values && [...values])
      return { rows, rowCount: rowCount ?? 0 }
    },
  })
  return { reader, first, second, objects }
}
