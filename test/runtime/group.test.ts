import { describe, expect, test } from 'vitest'
import { createGroup, type Service, type ServiceState } from '../../src/runtime/index.ts'
import { recordingLogger } from './support.ts'

/** A service that notes its calls in `calls` and waits or fails as told. */
function service(name: string, calls: string[], behaviour: Partial<Pick<Service, 'start' | 'stop'>> = {}): Service {
  let state: ServiceState = 'idle'
  return {
    name,
    get state() {
      return state
    },
    async start() {
      calls.push(`start ${name}`)
      await behaviour.start?.()
      state = 'running'
    },
    async stop() {
      calls.push(`stop ${name}`)
      await behaviour.stop?.()
      state = 'stopped'
    },
  }
}

const fail = (message: string) => () => Promise.reject(new Error(message))

describe('a group', () => {
  test('starts in order and stops in reverse, as often as asked', async () => {
    const calls: string[] = []
    const group = createGroup({ name: 'all', services: ['a', 'b', 'c'].map((name) => service(name, calls)) })
    await group.start()
    await group.start()
    expect(group.state).toBe('running')
    await group.stop()
    await group.stop()
    expect(group.state).toBe('stopped')
    expect(calls).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a'])
    await group.start()
    await group.stop()
    expect(calls).toHaveLength(12)
  })

  test('can be stopped before it was started', async () => {
    const calls: string[] = []
    const group = createGroup({ name: 'all', services: [service('a', calls)] })
    await group.stop()
    expect(calls).toEqual([])
    expect(group.state).toBe('stopped')
  })

  test('when one fails to start, it and those before it are stopped, and its error is thrown', async () => {
    const calls: string[] = []
    const services = [
      service('a', calls),
      service('b', calls, { stop: fail('b does not stop') }),
      service('c', calls, { start: fail('no database') }),
      service('d', calls),
    ]
    const logger = recordingLogger()
    const group = createGroup({ name: 'all', services, logger })
    await expect(group.start()).rejects.toThrow('no database')
    expect(group.state).toBe('stopped')
    expect(calls).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a'])
    expect(logger.lines.map((line) => line.message)).toEqual(['b did not stop cleanly'])
  })

  test('when some fail to stop, the rest are stopped, and the error names them', async () => {
    const calls: string[] = []
    const failures = [new Error('first'), new Error('second')]
    const services = [
      service('a', calls),
      service('b', calls, { stop: () => Promise.reject(failures[1]) }),
      service('c', calls, { stop: () => Promise.reject(failures[0]) }),
    ]
    const group = createGroup({ name: 'all', services })
    await group.start()
    await expect(group.stop()).rejects.toMatchObject({
      code: 'STOP_FAILED',
      message: expect.stringContaining('c, b did not end as asked'),
      cause: { errors: failures },
    })
    expect(calls.slice(3)).toEqual(['stop c', 'stop b', 'stop a'])
    expect(group.state).toBe('stopped')
  })

  test('a stop during the start lets the one that is starting finish, and goes no further', async () => {
    const calls: string[] = []
    let finish = () => {}
    const slow = () =>
      new Promise<void>((resolve) => {
        finish = resolve
      })
    const services = [service('a', calls), service('b', calls, { start: slow }), service('c', calls)]
    const group = createGroup({ name: 'all', services })
    const started = group.start()
    const refusal = expect(started).rejects.toMatchObject({ code: 'STOPPED' })
    await new Promise(setImmediate)
    const stopped = group.stop()
    await expect(group.start()).rejects.toMatchObject({ code: 'STOPPED' })
    expect(calls).toEqual(['start a', 'start b'])
    finish()
    await refusal
    await stopped
    expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a'])
    expect(group.state).toBe('stopped')
  })

  test('a stop during the start tells of those that did not stop', async () => {
    const calls: string[] = []
    const group = createGroup({
      name: 'all',
      services: [service('a', calls, { stop: fail('stuck') }), service('b', calls)],
    })
    const refusal = expect(group.start()).rejects.toMatchObject({ code: 'STOPPED' })
    await expect(group.stop()).rejects.toMatchObject({ code: 'STOP_FAILED' })
    await refusal
    expect(calls).toEqual(['start a', 'stop a'])
  })

  test('two who stop at once wait for the same end', async () => {
    const calls: string[] = []
    const group = createGroup({ name: 'all', services: [service('a', calls)] })
    await group.start()
    await Promise.all([group.stop(), group.stop()])
    expect(calls).toEqual(['start a', 'stop a'])
  })
})
