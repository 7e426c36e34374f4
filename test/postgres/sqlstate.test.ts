import { describe, expect, test } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { classify, endsSession, isRepeatable, sqlstateOf } from '../../src/postgres/index.ts'

const pgError = (code: string, message = 'x') => Object.assign(new Error(message), { code })

describe('classify', () => {
  test.each([
    '40001',
    '40P01',
    '55P03',
    '57P01',
    '57P02',
    '57P03',
    '57P05',
    '53300',
    '53200',
    '25006',
    '26000',
    '57014',
  ])('%s can succeed later', (code) => expect(classify(pgError(code))).toBe('transient'))

  test.each(['23505', '42P01', '22012', '28P01', '3D000', '42501', 'P0001', '0A000'])(
    '%s fails the same way again',
    (code) => expect(classify(pgError(code))).toBe('permanent'),
  )

  test.each([
    '08006',
    '08P01',
    'ECONNREFUSED',
    'ECONNRESET',
    'ETIMEDOUT',
    'EPIPE',
    'ENOTFOUND',
    'CONNECTION_CLOSED',
    'P1001',
  ])('%s is a matter of the connection', (code) => expect(classify(pgError(code))).toBe('connection'))

  test.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Query read timeout',
    'timeout expired',
    'timeout exceeded when trying to connect',
    'Client has encountered a connection error and is not queryable',
  ])('"%s" is a matter of the connection', (message) => expect(classify(new Error(message))).toBe('connection'))

  test('LISTEN on a replica that is still replaying can succeed later', () => {
    expect(classify(pgError('0A000', 'cannot execute LISTEN during recovery'))).toBe('transient')
  })

  test('a plan that an ALTER TABLE made stale is made afresh', () => {
    expect(classify(pgError('0A000', 'cached plan must not change result type'))).toBe('transient')
  })

  test('no connection because of a wrong password stays a wrong password', () => {
    const error = new AftercommitError('DATABASE_UNREACHABLE', 'x', { cause: pgError('28P01') })
    expect(classify(error)).toBe('permanent')
  })

  test('no connection because all are taken can succeed later', () => {
    expect(classify(new AftercommitError('DATABASE_UNREACHABLE', 'x', { cause: pgError('53300') }))).toBe('transient')
  })

  test('refusals of several addresses at once are a matter of the connection', () => {
    expect(classify(new AggregateError([pgError('ECONNREFUSED'), pgError('ECONNREFUSED')]))).toBe('connection')
  })

  test("the application's own errors are permanent, even strange ones", () => {
    const ring = new Error('ring')
    ring.cause = ring
    for (const thrown of [new TypeError('x'), 'text', null, undefined, 7, ring])
      expect(classify(thrown)).toBe('permanent')
  })
})

describe('sqlstateOf', () => {
  test('finds the state behind the wrapper of an ORM', () => {
    expect(sqlstateOf(new Error('Failed query', { cause: pgError('23505') }))).toBe('23505')
  })

  test("finds the state in Prisma's metadata, and does not take Prisma's own code for one", () => {
    const cause = { originalCode: '23505', kind: 'UniqueConstraintViolation' }
    expect(sqlstateOf({ code: 'P2010', meta: { driverAdapterError: { cause } } })).toBe('23505')
    expect(sqlstateOf({ code: 'P2010', meta: { code: '40001' } })).toBe('40001')
    expect(sqlstateOf({ code: 'P2025' })).toBeUndefined()
  })

  test('does not take a network code of five letters for a state', () => {
    expect(sqlstateOf(pgError('EPIPE'))).toBeUndefined()
  })
})

test('only conflicts between transactions are repeated', () => {
  expect([pgError('40001'), pgError('40P01')].every(isRepeatable)).toBe(true)
  expect([pgError('55P03'), new Error('Connection terminated'), pgError('57P01')].some(isRepeatable)).toBe(false)
})

test('a session that the server is ending is not used again', () => {
  expect(endsSession(pgError('57P01'))).toBe(true)
  expect(endsSession(pgError('25P03'))).toBe(true)
  expect(endsSession(new Error('Connection terminated unexpectedly'))).toBe(true)
  expect(endsSession(pgError('23505'))).toBe(false)
  expect(endsSession(undefined)).toBe(false)
})
