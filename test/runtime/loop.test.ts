import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import {
  createHealth,
  createLoop,
  createRegistry,
  createTestClock,
  type LoopContext,
  type LoopOptions,
} from '../../src/runtime/index.ts'
import { parseExposition, recordingLogger } from './support.ts'

/** A loop called tailer with everything around it under the test's control; the dice always show the middle. */
function setUp(run: LoopOptions['run'], options: Partial<LoopOptions> = {}) {
  const clock = createTestClock()
  const logger = recordingLogger()
  const metrics = createRegistry({ clock })
  const health = createHealth({ clock })
  const loop = createLoop({ name: 'tailer', run, clock, logger, metrics, health, random: () => 0.5, ...options })
  const failureCount = async () =>
    parseExposition(await metrics.text()).value('aftercommit_loop_failures_total', { loop: 'tailer' })
  return { clock, logger, health, loop, failureCount }
}

const waitForever = ({ wait }: LoopContext) => wait(Infinity).then(() => {})

describe('a loop that is well', () => {
  test('runs until it is stopped, and ends although it never looks at its signal', async () => {
    let rounds = 0
    const { loop, clock } = setUp(async ({ wait }) => {
      for (;;) {
        rounds++
        await wait(1000)
      }
    })
    expect(loop.state).toBe('idle')
    await loop.start()
    expect(loop.state).toBe('running')
    await clock.advance(3500)
    expect(rounds).toBe(4)
    await loop.stop()
    expect(loop.state).toBe('stopped')
    expect(clock.timers).toBe(0)
    await clock.advance(10_000)
    expect(rounds).toBe(4)
  })

  test('a wake ends its wait early, and one that comes while it works is not lost', async () => {
    const outcomes: string[] = []
    let finishWork = () => {}
    const { loop, clock } = setUp(async ({ wait }) => {
      outcomes.push(await wait(60_000))
      await new Promise<void>((resolve) => {
        finishWork = resolve
      })
      outcomes.push(await wait(60_000))
      outcomes.push(await wait(60_000))
    })
    await loop.start()
    loop.wake()
    await clock.advance(0)
    loop.wake()
    loop.wake()
    finishWork()
    await clock.advance(0)
    expect(outcomes).toEqual(['woken', 'woken'])
    await loop.stop()
  })

  test('a second start changes nothing', async () => {
    let runs = 0
    const { loop } = setUp((context) => {
      runs++
      return waitForever(context)
    })
    await loop.start()
    await loop.start()
    expect(runs).toBe(1)
    await loop.stop()
  })

  test('it can be started again after it was stopped', async () => {
    let runs = 0
    const { loop, health } = setUp((context) => {
      runs++
      return waitForever(context)
    })
    await loop.start()
    await loop.stop()
    await loop.start()
    expect(runs).toBe(2)
    expect(health.check().ready).toBe(true)
    await loop.stop()
  })
})

describe('a loop that fails', () => {
  test('is started again after a delay, and says so in the log, in a metric and to its listeners', async () => {
    const error = Object.assign(new Error('no route to postgres://app:hunter2@db'), { code: 'ENETUNREACH' })
    let runs = 0
    const { loop, clock, logger, failureCount } = setUp((context) => {
      if (++runs === 1) throw error
      return waitForever(context)
    })
    const restarts: unknown[] = []
    loop.onRestart((restart) => restarts.push(restart))
    await loop.start()
    await clock.advance(199)
    expect(loop.state).toBe('restarting')
    expect(runs).toBe(1)
    expect(restarts).toEqual([])
    await clock.advance(1)
    expect(loop.state).toBe('running')
    expect(runs).toBe(2)
    expect(restarts).toEqual([{ loop: 'tailer', error }])
    expect(await failureCount()).toBe(1)
    expect(logger.lines).toEqual([
      {
        level: 'error',
        message: 'tailer failed and will be started again',
        fields: {
          loop: 'tailer',
          failures: 1,
          delay_ms: 200,
          err: { name: 'Error', code: 'ENETUNREACH', message: 'no route to postgres://app:***@db' },
        },
      },
    ])
    await loop.stop()
  })

  test('a run that ends by itself is a failure too', async () => {
    let runs = 0
    const { loop, clock, logger } = setUp(async (context) => {
      if (++runs > 1) await waitForever(context)
    })
    await loop.start()
    await clock.advance(1000)
    expect(runs).toBe(2)
    expect(logger.lines[0]?.fields.err).toMatchObject({ code: 'LOOP_ENDED' })
    await loop.stop()
  })

  test('through ten minutes without a database it is live but not ready, logs little, and resumes', async () => {
    let databaseIsUp = false
    let runs = 0
    const { loop, clock, logger, health, failureCount } = setUp(
      (context) => {
        runs++
        if (!databaseIsUp) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
        return waitForever(context)
      },
      // Shorter than the delay between two tries: waiting for the next one is not being stuck.
      { beatWithinMs: 1000 },
    )
    await loop.start()
    for (let round = 0; round < 100; round++) {
      await clock.advance(6000)
      expect(health.check()).toEqual({
        live: true,
        ready: false,
        reasons: [expect.stringMatching(/^tailer failed \(ECONNREFUSED\) and starts again in /)],
      })
    }
    expect(logger.lines.length).toBeLessThanOrEqual(11)
    expect(runs).toBeGreaterThan(60)
    const told = logger.lines.reduce((sum, line) => sum + 1 + Number(line.fields.repeated ?? 0), 0)
    expect(told).toBeLessThanOrEqual(runs)
    expect(told).toBeGreaterThan(runs - 10)
    databaseIsUp = true
    await clock.advance(10_000)
    expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
    expect(await failureCount()).toBe(runs - 1)
    await loop.stop()
  })

  test('is not ready again before its new run has made progress', async () => {
    let runs = 0
    let connect = () => {}
    const { loop, clock, health } = setUp(async (context) => {
      if (++runs === 1) throw new Error('broken')
      await new Promise<void>((resolve) => {
        connect = resolve
      })
      await waitForever(context)
    })
    await loop.start()
    await clock.advance(1000)
    expect(loop.state).toBe('running')
    expect(health.check().ready).toBe(false)
    connect()
    await clock.advance(0)
    expect(health.check().ready).toBe(true)
    await loop.stop()
  })

  test('waits longer each time, and from the beginning again after it did well for a minute', async () => {
    const startedAt: number[] = []
    const { loop, clock, logger } = setUp(async ({ wait }) => {
      startedAt.push(clock.monotonic())
      if (startedAt.length === 4) await wait(60_000)
      throw new Error('broken')
    })
    await loop.start()
    await clock.advance(200 + 400 + 800 + 60_000 + 200)
    expect(startedAt).toEqual([0, 200, 600, 1400, 61_600])
    expect(logger.lines.find((line) => line.level === 'info')).toMatchObject({
      message: 'tailer runs well again',
      fields: { failures: 3 },
    })
    await loop.stop()
  })

  test('a run that hung for a minute and then failed did not do well', async () => {
    const startedAt: number[] = []
    const { loop, clock } = setUp(async ({ signal }) => {
      startedAt.push(clock.monotonic())
      await clock.sleep(70_000, signal)
      throw new Error('broken')
    })
    await loop.start()
    await clock.advance(70_200 + 70_400)
    expect(startedAt).toEqual([0, 70_200, 140_600])
    await loop.stop()
  })

  test('the signal of a failed run fires, and what it left behind cannot vouch for the next one', async () => {
    const contexts: LoopContext[] = []
    const { loop, clock, health } = setUp(async (context) => {
      contexts.push(context)
      if (contexts.length === 1) throw new Error('broken')
      await clock.sleep(Infinity, context.signal)
    })
    await loop.start()
    await clock.advance(1000)
    const [failed] = contexts
    expect(failed?.signal.aborted).toBe(true)
    failed?.beat()
    await expect(failed?.wait(10)).rejects.toMatchObject({ code: 'STOPPED' })
    expect(health.check().ready).toBe(false)
    await loop.stop()
  })

  test('a listener that throws stops neither the loop nor the other listeners', async () => {
    let runs = 0
    const { loop, clock, logger } = setUp((context) => {
      if (++runs < 3) throw new Error('broken')
      return waitForever(context)
    })
    let told = 0
    loop.onRestart(() => {
      throw new Error('listener')
    })
    const remove = loop.onRestart(() => told++)
    await loop.start()
    await clock.advance(200)
    remove()
    await clock.advance(1000)
    expect(runs).toBe(3)
    expect(told).toBe(1)
    expect(logger.lines.filter((line) => line.message.includes('listener'))).toHaveLength(2)
    await loop.stop()
  })

  test.each([undefined, null, 'text', Object.create(null)])('throwing %o is survived', async (thrown) => {
    let runs = 0
    const { loop, clock } = setUp((context) => {
      if (++runs === 1) throw thrown
      return waitForever(context)
    })
    await loop.start()
    await clock.advance(1000)
    expect(runs).toBe(2)
    await loop.stop()
  })

  test('a logger that throws is survived', async () => {
    const broken = () => {
      throw new Error('disk full')
    }
    let runs = 0
    const logger = { ...recordingLogger(), error: broken, warn: broken, info: broken }
    const { loop, clock } = setUp(
      (context) => {
        if (++runs === 1) throw new Error('broken')
        return waitForever(context)
      },
      { logger },
    )
    await loop.start()
    await clock.advance(1000)
    expect(runs).toBe(2)
    await loop.stop()
  })
})

describe('a loop and its health', () => {
  test('is stuck when it neither beats nor waits, and well when it does either', async () => {
    let work = () => {}
    let context: LoopContext | undefined
    const { loop, clock, health } = setUp(
      async (given) => {
        context = given
        await given.wait(600_000)
        await new Promise<void>((resolve) => {
          work = resolve
        })
        await waitForever(given)
      },
      { beatWithinMs: 30_000 },
    )
    await loop.start()
    await clock.advance(599_999)
    expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
    await clock.advance(40_001)
    expect(health.check()).toEqual({ live: false, ready: false, reasons: ['tailer made no progress for 40 s'] })
    context?.beat()
    expect(health.check().live).toBe(true)
    work()
    await clock.advance(86_400_000)
    expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
    await loop.stop()
  })

  test('is not ready in its first round and while it stops, and has no say once stopped', async () => {
    let proceed = () => {}
    const step = () =>
      new Promise<void>((resolve) => {
        proceed = resolve
      })
    const { loop, clock, health } = setUp(async (context) => {
      await step()
      await waitForever(context).catch(() => {})
      await step()
    })
    await loop.start()
    expect(health.check().reasons).toEqual(['tailer is in its first round'])
    proceed()
    await clock.advance(0)
    expect(health.check().ready).toBe(true)
    const stopped = loop.stop()
    await clock.advance(0)
    expect(health.check()).toEqual({ live: true, ready: false, reasons: ['tailer is stopping'] })
    proceed()
    await stopped
    expect(health.check()).toEqual({ live: true, ready: true, reasons: [] })
  })
})

describe('stopping', () => {
  test('before the start and twice is fine', async () => {
    const { loop } = setUp(waitForever)
    await loop.stop()
    await loop.stop()
    expect(loop.state).toBe('stopped')
    await loop.start()
    await Promise.all([loop.stop(), loop.stop()])
    expect(loop.state).toBe('stopped')
  })

  test('cuts the delay before a restart short', async () => {
    let runs = 0
    const { loop, clock } = setUp(() => {
      runs++
      throw new Error('broken')
    })
    await loop.start()
    await clock.advance(0)
    expect(loop.state).toBe('restarting')
    await loop.stop()
    expect(loop.state).toBe('stopped')
    expect(clock.timers).toBe(0)
    expect(runs).toBe(1)
  })

  test('waits for the run to finish what it is doing', async () => {
    let finished = false
    const { loop, clock } = setUp(async ({ signal }) => {
      await clock.sleep(Infinity, signal).catch(() => {})
      await clock.sleep(5000)
      finished = true
    })
    await loop.start()
    const stopped = loop.stop()
    await clock.advance(4999)
    expect(loop.state).toBe('stopping')
    await expect(loop.start()).rejects.toMatchObject({ code: 'STOPPED' })
    await clock.advance(1)
    await stopped
    expect(finished).toBe(true)
  })

  test('a run that does not end is named, is not live, and no second run is started beside it', async () => {
    let end = () => {}
    const { loop, clock, health, logger } = setUp(
      () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
      { stopTimeoutMs: 10_000 },
    )
    await loop.start()
    const refusal = expect(loop.stop()).rejects.toMatchObject({
      code: 'TIMED_OUT',
      message: 'Loop "tailer" was asked to stop and did not end within 10 s.',
    })
    await clock.advance(10_000)
    await refusal
    expect(loop.state).toBe('stopping')
    expect(health.check()).toEqual({
      live: false,
      ready: false,
      reasons: ['tailer was asked to stop and has not ended'],
    })
    expect(logger.lines.at(-1)?.level).toBe('error')
    await expect(loop.start()).rejects.toMatchObject({ code: 'STOPPED' })
    const second = loop.stop()
    end()
    await second
    expect(loop.state).toBe('stopped')
    expect(health.check().live).toBe(true)
  })

  test('an error on the way out is told, the stop itself is not', async () => {
    const { loop, logger } = setUp(async (context) => {
      await waitForever(context).catch(() => {})
      throw new Error('checkpoint not written')
    })
    await loop.start()
    await loop.stop()
    expect(logger.lines).toMatchObject([{ level: 'warn', message: 'tailer failed while it was stopping' }])
    const quiet = setUp(waitForever)
    await quiet.loop.start()
    await quiet.loop.stop()
    expect(quiet.logger.lines).toEqual([])
  })

  test('an outer signal stops the loop, and nothing stays attached to it', async () => {
    const controller = new AbortController()
    const { loop } = setUp(waitForever, { signal: controller.signal })
    await loop.start()
    await loop.stop()
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    await loop.start()
    controller.abort()
    expect(loop.state).toBe('stopping')
    await loop.stop()
    expect(loop.state).toBe('stopped')
    await expect(loop.start()).rejects.toMatchObject({ code: 'STOPPED' })
  })
})
