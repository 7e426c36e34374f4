import { describe, expect, test } from 'vitest'
import { classify, type Database, isTransaction, type Transaction, withRetry } from '../../src/postgres/index.ts'
import { connect, openDatabase, openTestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { createProxy } from '../support/proxy.ts'

async function openNotes(options: Parameters<typeof openTestDatabase>[0] = {}) {
  const opened = await openTestDatabase({ poolSize: 1, ...options })
  await opened.db.query('create table notes (id integer primary key)')
  return opened
}

const count = async (db: Database) =>
  Number((await db.query<{ n: string }>('select count(*) as n from notes')).rows[0]!.n)
const add = (tx: Transaction, id: number) => tx.query('insert into notes values (($1::text)::integer)', [id])

describe.each([18, 14] as const)('a transaction on Postgres %i', (major) => {
  test('commits when its function returns, and hands on what it returned', async () => {
    const { db } = await openNotes({ major })
    const result = await db.transaction(async (tx) => {
      await add(tx, 1)
      return 'done'
    })
    expect(result).toBe('done')
    expect(await count(db)).toBe(1)
  })

  test('rolls back when its function throws, and the next user finds a clean connection', async () => {
    const { db } = await openNotes({ major })
    const failing = db.transaction(async (tx) => {
      await add(tx, 1)
      await tx.query('select 1/0')
    })
    await expect(failing).rejects.toMatchObject({ code: '22012' })
    expect(await count(db)).toBe(0)
    expect(db.stats().open).toBe(1)
  })

  test('whose failed statement was swallowed says that nothing was written, and why', async () => {
    const { db } = await openNotes({ major })
    const failing = db.transaction(async (tx) => {
      await add(tx, 1)
      await tx.query('select 1/0').catch(() => {})
    })
    await expect(failing).rejects.toMatchObject({ code: 'TX_ABORTED', cause: { code: '22012' } })
    expect(await count(db)).toBe(0)
  })

  test('takes isolation, read only and timeouts for itself alone', async () => {
    const { db } = await openNotes({ major })
    const settings = `select current_setting('transaction_isolation') as isolation, current_setting('transaction_read_only') as "readOnly",
                             current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement`
    const inside = await db.transaction((tx) => tx.query(settings), {
      isolation: 'serializable',
      readOnly: true,
      lockTimeoutMs: 1500,
      statementTimeoutMs: 2500,
    })
    expect(inside.rows).toEqual([{ isolation: 'serializable', readOnly: 'on', lock: '1500ms', statement: '2500ms' }])
    const outside = await db.query(settings)
    expect(outside.rows).toEqual([{ isolation: 'read committed', readOnly: 'off', lock: '0', statement: '0' }])
  })
})

describe('the end of a transaction', () => {
  test('every call after it is refused', async () => {
    const { db } = await openNotes()
    let leaked: Transaction | undefined
    await db.transaction(async (tx) => {
      leaked = tx
      expect(tx.ended).toBe(false)
    })
    expect(leaked!.ended).toBe(true)
    await expect(leaked!.query('select 1')).rejects.toMatchObject({ code: 'TX_ENDED' })
    await expect(leaked!.savepoint(async () => {})).rejects.toMatchObject({ code: 'TX_ENDED' })
    expect(() => leaked!.onCommit(() => {})).toThrow(expect.objectContaining({ code: 'TX_ENDED' }))
  })

  test('a COMMIT by hand is reported, and the connection stays usable', async () => {
    const { db } = await openNotes()
    const byHand = db.transaction(async (tx) => void (await tx.query('commit')))
    await expect(byHand).rejects.toMatchObject({ code: 'TX_ENDED' })
    expect(await count(db)).toBe(0)
  })

  test('a BEGIN outside a transaction is not left to the next user', async () => {
    const { db } = await openNotes()
    await db.query('begin')
    const { rows } = await db.query<{ same: boolean }>('select now() = statement_timestamp() as same')
    expect(rows).toEqual([{ same: true }])
  })

  test('a deferred constraint that fails at COMMIT is an error with its SQLSTATE', async () => {
    const { db } = await openNotes()
    await db.query('create table parts (note integer references notes deferrable initially deferred)')
    const failing = db.transaction(async (tx) => void (await tx.query('insert into parts values (7)')))
    await expect(failing).rejects.toMatchObject({ code: '23503' })
  })

  test('a connection lost before COMMIT leaves no doubt: nothing was written', async () => {
    const { db } = await openNotes()
    const failing = db.transaction(async (tx) => {
      await add(tx, 1)
      await tx.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {})
    })
    await expect(failing).rejects.toMatchObject({ code: '57P01' })
    expect(await count(db)).toBe(0)
  })

  test('a connection lost while no statement ran leaves no doubt either', async () => {
    const { url, db: direct } = await openNotes()
    const proxy = await createProxy(url)
    const { logger, lines } = collectingLogger()
    const db = openDatabase({ database: proxy.url, logger })
    const failing = db.transaction(async (tx) => {
      await add(tx, 1)
      proxy.dropAll()
      await eventually(() => lines.includes('debug lost a database connection'))
    })
    const error: Error & { code?: string } = await failing.then(
      () => expect.fail('there is nothing left to commit on'),
      (thrown) => thrown,
    )
    expect(classify(error)).toBe('connection')
    expect(error.code).not.toBe('OUTCOME_UNKNOWN')
    expect(await count(direct)).toBe(0)
  })

  test('a COMMIT whose answer is lost is OUTCOME_UNKNOWN, and it did happen', async () => {
    const { url, db: direct } = await openNotes()
    const proxy = await createProxy(url)
    const db = openDatabase({ database: proxy.url })
    const cut = db.transaction(async (tx) => {
      await add(tx, 1)
      proxy.cutOnCommit()
    })
    await expect(cut).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', name: 'OutcomeUnknownError' })
    expect(await count(direct)).toBe(1)
    proxy.pass()
    expect(await count(db)).toBe(1)
  })
})

describe('savepoints', () => {
  test('undo what happened inside and let the transaction go on', async () => {
    const { db } = await openNotes()
    await db.transaction(async (tx) => {
      await add(tx, 1)
      await expect(tx.savepoint(() => add(tx, 1))).rejects.toMatchObject({ code: '23505' })
      await tx.savepoint(() => add(tx, 2))
    })
    expect(await count(db)).toBe(2)
  })

  test('nest', async () => {
    const { db } = await openNotes()
    await db.transaction(async (tx) => {
      await tx.savepoint(async () => {
        await add(tx, 1)
        await tx.savepoint(() => add(tx, 1)).catch(() => {})
        await add(tx, 2)
      })
    })
    expect(await count(db)).toBe(2)
  })
})

describe('onCommit', () => {
  test('hooks run after the commit, in order', async () => {
    const { db } = await openNotes()
    const calls: string[] = []
    await db.transaction(async (tx) => {
      tx.onCommit(() => calls.push('first'))
      tx.onCommit(() => calls.push('second'))
      await add(tx, 1)
      calls.push('inside')
    })
    expect(calls).toEqual(['inside', 'first', 'second'])
  })

  test('hooks do not run after a rollback, nor those of a savepoint that was undone', async () => {
    const { db } = await openNotes()
    const calls: string[] = []
    await db
      .transaction(async (tx) => {
        tx.onCommit(() => calls.push('rolled back'))
        throw new Error('no')
      })
      .catch(() => {})
    await db.transaction(async (tx) => {
      tx.onCommit(() => calls.push('kept'))
      await tx
        .savepoint(async () => {
          tx.onCommit(() => calls.push('undone'))
          throw new Error('no')
        })
        .catch(() => {})
    })
    expect(calls).toEqual(['kept'])
  })

  test('a hook that throws does not turn a commit into a failure', async () => {
    const { db } = await openNotes()
    const calls: string[] = []
    await db.transaction(async (tx) => {
      tx.onCommit(() => {
        throw new Error('hook')
      })
      tx.onCommit(() => calls.push('next'))
      await add(tx, 1)
    })
    expect(calls).toEqual(['next'])
    expect(await count(db)).toBe(1)
  })
})

describe('a signal', () => {
  test('that aborts rolls back at once, even while a statement runs', async () => {
    const { db, url } = await openNotes()
    const outside = await connect(url)
    await outside.query('begin; lock table notes')
    const controller = new AbortController()
    const waiting = db.transaction(
      async (tx) => {
        controller.abort(new Error('stop now'))
        await add(tx, 1)
      },
      { signal: controller.signal },
    )
    await expect(waiting).rejects.toThrow('stop now')
    await outside.query('rollback')
    expect(await count(db)).toBe(0)
  })

  test('that has aborted already lets nothing begin', async () => {
    const { db } = await openNotes()
    let began = false
    const begin = async () => {
      began = true
    }
    const refused = db.transaction(begin, { signal: AbortSignal.abort(new Error('too late')) })
    await expect(refused).rejects.toThrow('too late')
    expect(began).toBe(false)
  })
})

test('statements sent side by side run in the order they were made', async () => {
  const { db } = await openNotes()
  await db.query('create table journal (at serial, word text)')
  const words = Array.from({ length: 50 }, (_, index) => `word ${index}`)
  await db.transaction(async (tx) => {
    await Promise.all(words.map((word) => tx.query('insert into journal (word) values ($1::text)', [word])))
  })
  const { rows } = await db.query<{ word: string }>('select word from journal order by at')
  expect(rows.map(({ word }) => word)).toEqual(words)
})

test('a transaction of ours is told from other objects', async () => {
  const { db } = await openNotes()
  expect(await db.transaction(async (tx) => isTransaction(tx))).toBe(true)
  expect([db, {}, null, 'tx'].some(isTransaction)).toBe(false)
})

test('withRetry repeats a transaction that lost against another one', async () => {
  const { db } = await openNotes({ poolSize: 2 })
  await db.query('create table counters (n integer); insert into counters values (0)')
  const attempts: number[] = []
  const increment = () =>
    withRetry((attempt) => {
      attempts.push(attempt)
      return db.transaction(
        async (tx) => {
          const { rows } = await tx.query<{ n: number }>('select n from counters')
          // The first attempt is made to lose: somebody else commits between its read and its write.
          if (attempt === 1) await db.control.query('update counters set n = n + 10')
          await tx.query('update counters set n = ($1::text)::integer', [rows[0]!.n + 1])
        },
        { isolation: 'repeatable read' },
      )
    })
  await increment()
  expect(attempts).toEqual([1, 2])
  expect((await db.query('select n from counters')).rows).toEqual([{ n: 11 }])
})

test('withRetry does not repeat what fails the same way again', async () => {
  let attempts = 0
  const failing = withRetry(async () => {
    attempts++
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(attempts).toBe(1)
})
