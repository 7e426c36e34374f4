import pino from 'pino'
import { describe, expect, test } from 'vitest'
import {
  consoleLogger,
  createTestClock,
  createThrottledLog,
  type Logger,
  redacting,
  silentLogger,
  summarizeError,
} from '../../src/runtime/index.ts'
import { recordingLogger } from './support.ts'

describe('redacting', () => {
  test('masks values under secret names at any depth, and secrets inside of text', () => {
    const logger = recordingLogger()
    redacting(logger).info(
      {
        url: 'postgres://app:hunter2@db/x',
        userId: 'u-1',
        options: { headers: { authorization: 'hunter2' }, list: [{ api_key: 'hunter2', key: 'order/42' }] },
        token: null,
      },
      'connected to redis://:hunter2@cache',
    )
    expect(logger.lines).toEqual([
      {
        level: 'info',
        message: 'connected to redis://:***@cache',
        fields: {
          url: 'postgres://app:***@db/x',
          userId: '***',
          options: { headers: { authorization: '***' }, list: [{ api_key: '***', key: 'order/42' }] },
          token: null,
        },
      },
    ])
  })

  test('an error becomes name, code and message: no stack, and nothing of what Postgres quotes from the row', () => {
    const logger = recordingLogger()
    const error = Object.assign(new Error('duplicate key value violates unique constraint "mail"'), {
      code: '23505',
      detail: 'Key (email)=(ann@example.com) already exists.',
      where: 'ann@example.com',
    })
    redacting(logger).error({ err: error }, 'failed')
    expect(logger.lines[0]?.fields).toEqual({
      err: { name: 'Error', code: '23505', message: 'duplicate key value violates unique constraint "mail"' },
    })
  })

  test('an error passed instead of fields is summarised as well', () => {
    const logger = recordingLogger()
    redacting(logger).error(new TypeError('broken'), 'failed')
    expect(logger.lines[0]?.fields).toEqual({ err: { name: 'TypeError', message: 'broken' } })
  })

  test('the stack is told when the logger says that its debug level is on, with secrets taken out', () => {
    const logger = { ...recordingLogger(), isLevelEnabled: () => true }
    redacting(logger).error({ err: new Error('at postgres://app:hunter2@db') }, 'failed')
    const { err } = logger.lines[0]!.fields as { err: { stack: string } }
    expect(err.stack).toContain('logger.test.ts')
    expect(err.stack).not.toContain('hunter2')
  })

  test('what cannot be printed as it is becomes something that can', () => {
    const logger = recordingLogger()
    const circular: Record<string, unknown> = { position: 9007199254740993n }
    circular.self = circular
    const hostile = JSON.parse('{"__proto__":{"polluted":true}}') as object
    redacting(logger).info(
      { circular, hostile, at: new Date(0), never: new Date('x'), bytes: Buffer.alloc(3), fn: () => 1, map: new Map() },
      'odd',
    )
    const { fields } = logger.lines[0]!
    expect(fields).toMatchObject({
      circular: { position: '9007199254740993', self: '[circular]' },
      at: '1970-01-01T00:00:00.000Z',
      never: '[invalid date]',
      bytes: '[3 bytes]',
      fn: '[function]',
      map: '[0 entries]',
    })
    expect(Object.keys(fields.hostile as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(fields.hostile)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
  })

  test('an object with toLog decides itself what is said of it', () => {
    const logger = recordingLogger()
    const event = { data: 'private', toLog: () => ({ id: 'event-1', payload: 'private' }) }
    redacting(logger).info({ event }, 'handled')
    expect(logger.lines[0]?.fields).toEqual({ event: { id: 'event-1', payload: '***' } })
  })

  test('long texts, long lists and deep objects are cut', () => {
    const logger = recordingLogger()
    let deep: object = {}
    for (let i = 0; i < 50; i++) deep = { deep }
    redacting(logger).info({ text: 'x'.repeat(100_000), list: Array.from({ length: 60 }, () => 1), deep }, 'big')
    const { text, list } = logger.lines[0]!.fields as { text: string; list: unknown[] }
    expect(text).toHaveLength(8193)
    expect(list).toHaveLength(51)
    expect(list.at(-1)).toBe('[10 more]')
    expect(JSON.stringify(logger.lines[0]?.fields.deep)).toContain('[deep]')
  })

  test('a getter that throws or a logger that throws does not reach the caller', () => {
    const trap = {
      get broken() {
        throw new Error('trap')
      },
    }
    const logger = recordingLogger()
    redacting(logger).info(trap, 'odd')
    expect(logger.lines[0]?.fields).toEqual({ unprintable: true })
    const throwing: Logger = {
      ...silentLogger,
      isLevelEnabled: () => true,
      error: () => {
        throw new Error('disk full')
      },
    }
    expect(() => redacting(throwing).error({}, 'x')).not.toThrow()
  })

  test('children redact too, wrapping twice is wrapping once, and a disabled level costs no look at the fields', () => {
    const logger = recordingLogger()
    const wrapped = redacting(logger)
    expect(redacting(wrapped)).toBe(wrapped)
    wrapped.child({ password: 'hunter2', loop: 'tailer' }).warn({}, 'x')
    expect(logger.lines[0]?.fields).toEqual({ password: '***', loop: 'tailer' })
    const trap = {
      get broken(): never {
        throw new Error('looked at')
      },
    }
    const quiet = { ...recordingLogger(), isLevelEnabled: (level: string) => level !== 'debug' }
    redacting(quiet).debug(trap, 'x')
    expect(quiet.lines).toEqual([])
  })

  test('a pino logger fits as it is', () => {
    const written: string[] = []
    const logger = redacting(pino({ level: 'info' }, { write: (line: string) => written.push(line) }))
    logger.debug({}, 'not shown')
    logger.child({ loop: 'tailer' }).error({ err: new Error('broken'), position: 12n, secret: 'hunter2' }, 'failed')
    expect(written).toHaveLength(1)
    expect(JSON.parse(written[0]!)).toMatchObject({
      level: 50,
      loop: 'tailer',
      err: { name: 'Error', message: 'broken' },
      position: '12',
      secret: '***',
      msg: 'failed',
    })
    expect(written[0]).not.toContain('logger.test.ts')
  })
})

describe('summarizeError', () => {
  test('tells the causes, but not without end', () => {
    const root: Error = new Error('root')
    root.cause = root
    const summary = summarizeError(new Error('top', { cause: root }))
    expect(summary).toMatchObject({ message: 'top', cause: { message: 'root', cause: { message: 'root' } } })
    expect(JSON.stringify(summary).match(/root/g)).toHaveLength(3)
  })

  test('an aggregate without a message of its own speaks with the first of its errors', () => {
    const error = Object.assign(new AggregateError([new Error('connect ECONNREFUSED ::1:5432')]), {
      code: 'ECONNREFUSED',
    })
    expect(summarizeError(error)).toEqual({
      name: 'AggregateError',
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED ::1:5432',
    })
  })

  test.each([
    ['text', 'text'],
    [undefined, 'undefined'],
    [7, '7'],
    [Object.create(null), 'thrown: object'],
    [{ password: 'hunter2' }, 'thrown: object'],
  ])('what is thrown without being an error is told without being looked into', (thrown, message) => {
    expect(summarizeError(thrown)).toEqual({ name: 'Error', message })
  })

  test('an error that cannot be read is still an answer', () => {
    const error = new Error('x')
    Object.defineProperty(error, 'message', {
      get() {
        throw new Error('trap')
      },
    })
    expect(summarizeError(error)).toEqual({ name: 'Error', message: 'an error that cannot be shown' })
  })
})

describe('consoleLogger', () => {
  const create = (options: { level?: 'debug' | 'warn'; json?: boolean }) => {
    const written: string[] = []
    const clock = createTestClock({ now: new Date('2026-03-01T12:00:01.250Z') })
    return { written, logger: consoleLogger({ ...options, clock, stream: { write: (text) => written.push(text) } }) }
  }

  test('writes short lines for people', () => {
    const { logger, written } = create({})
    logger
      .child({ loop: 'tailer' })
      .warn({ attempt: 2, event: 'order.placed', why: 'too slow', gone: undefined }, 'retry')
    expect(written).toEqual(['12:00:01.250 WARN  retry loop=tailer attempt=2 event=order.placed why="too slow"\n'])
  })

  test('writes JSON lines for machines', () => {
    const { logger, written } = create({ json: true })
    logger.info({ position: 12n, level: 'x' }, 'started')
    expect(written.map((line) => JSON.parse(line))).toEqual([
      { position: '12', level: 'info', time: '2026-03-01T12:00:01.250Z', msg: 'started' },
    ])
    expect(written[0]?.endsWith('}\n')).toBe(true)
  })

  test('shows nothing below its level', () => {
    const { logger, written } = create({ level: 'warn' })
    logger.debug({}, 'a')
    logger.info({}, 'b')
    logger.warn({}, 'c')
    logger.error({}, 'd')
    expect(written.map((line) => line.trim().split(' ').at(-1))).toEqual(['c', 'd'])
    expect(logger.isLevelEnabled?.('info')).toBe(false)
  })

  test('redacts by itself, and tells stacks at the debug level', () => {
    const { logger, written } = create({ level: 'debug', json: true })
    logger.error({ password: 'hunter2', err: new Error('broken') }, 'postgres://app:hunter2@db')
    expect(written[0]).not.toContain('hunter2')
    expect(JSON.parse(written[0]!).err.stack).toContain('logger.test.ts')
  })

  test('a value cannot forge a line or reach the terminal', () => {
    const { logger, written } = create({})
    logger.info({ name: 'x\n12:00 ERROR forged', 'k\nk': '\u001b[2J' }, 'a\nb\u001b[31m')
    expect(written[0]?.match(/\n/g)).toHaveLength(1)
    expect(written[0]).not.toContain('\u001b')
  })

  test.each([true, false])('a line spells out C1 and bidirectional characters, as JSON %s', (json) => {
    const { logger, written } = create({ json })
    logger.info({ name: '\u009b2J', 'k\u202e': 1 }, 'a\u202eb')
    expect(written[0]).not.toMatch(/[\u009b\u202e]/)
    expect(written[0]).toContain('\\u009b2J')
  })
})

describe('createThrottledLog', () => {
  test('an hour of the same failure is a line a minute, and the lines account for all of it', async () => {
    const clock = createTestClock()
    const logger = recordingLogger()
    const log = createThrottledLog({ logger, clock })
    for (let second = 0; second <= 3600; second++) {
      log('error', 'ECONNREFUSED', { loop: 'tailer' }, 'cannot connect')
      if (second < 3600) await clock.advance(1000)
    }
    expect(logger.lines).toHaveLength(61)
    expect(logger.lines[0]?.fields).toEqual({ loop: 'tailer' })
    expect(logger.lines[1]?.fields).toEqual({ loop: 'tailer', repeated: 59 })
    const told = logger.lines.reduce((sum, line) => sum + 1 + Number(line.fields.repeated ?? 0), 0)
    expect(told).toBe(3601)
  })

  test('another kind of failure is told at once', () => {
    const logger = recordingLogger()
    const log = createThrottledLog({ logger, clock: createTestClock() })
    for (const key of ['a', 'b', 'a', 'b']) log('warn', key, {}, key)
    expect(logger.lines.map((line) => line.message)).toEqual(['a', 'b'])
  })

  test('the number of kinds it remembers is bounded', () => {
    const logger = recordingLogger()
    const log = createThrottledLog({ logger, clock: createTestClock() })
    for (let i = 0; i <= 500; i++) log('warn', `kind-${i}`, {}, 'x')
    log('warn', 'kind-500', {}, 'remembered')
    log('warn', 'kind-0', {}, 'forgotten, so told again')
    expect(logger.lines.slice(501).map((line) => line.message)).toEqual(['forgotten, so told again'])
  })

  test('the kind it forgets is the one that has been silent for longest', async () => {
    const clock = createTestClock()
    const logger = recordingLogger()
    const log = createThrottledLog({ logger, clock })
    for (let i = 0; i < 500; i++) log('warn', `kind-${i}`, {}, 'x')
    await clock.advance(60_000)
    for (const key of ['kind-0', 'new', 'kind-0']) log('warn', key, {}, key)
    expect(logger.lines.slice(500).map((line) => line.message)).toEqual(['kind-0', 'new'])
  })
})
