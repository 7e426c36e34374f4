import { SimpleError, SocketTimeoutError } from '@redis/client'
import { describe, expect, it } from 'vitest'
import { createChain, readMark } from '../../src/adapters/redis/chain.ts'
import { type Message, readMessage, writeOpenMessage } from '../../src/adapters/redis/message.ts'
import { toRedisError } from '../../src/adapters/redis/redis-error.ts'
import { event } from './support.ts'

function message(position: number, previous: number | null, epoch = 1): Message {
  const text = writeOpenMessage(event(position, `${epoch}-${position}`), epoch, 'a')
  return readMessage(`${text},"previous":${previous === null ? null : `"${previous}"`}}`)!
}

describe('the chain of messages', () => {
  it('has no gap from the first message of a Redis that never had one', () => {
    const chain = createChain()
    expect(chain.resume(null)).toEqual({ from: null, to: null })
    expect(chain.hear(message(7, null))).toEqual({ isNew: true, gap: null })
    expect(chain.hear(message(9, 7))).toEqual({ isNew: true, gap: null })
  })

  it('has a gap where a message names another one before it, and none after that', () => {
    const chain = createChain()
    chain.resume({ epoch: 1, position: 5n })
    expect(chain.hear(message(8, 7)).gap).toEqual({ from: 5n, to: 8n })
    expect(chain.hear(message(9, 8)).gap).toBeNull()
  })

  it('has a gap where another epoch begins', () => {
    const chain = createChain()
    chain.resume({ epoch: 1, position: 5n })
    expect(chain.hear(message(6, 5, 2)).gap).toEqual({ from: 5n, to: 6n })
  })

  it('knows repetitions by their ids', () => {
    const chain = createChain()
    chain.resume(null)
    chain.hear(message(1, null))
    chain.hear(message(2, 1))
    expect(chain.hear(message(1, 2))).toEqual({ isNew: false, gap: null })
    expect(chain.hear(message(3, 2))).toEqual({ isNew: true, gap: null })
  })

  it('has no gap after a pause in which nothing was published', () => {
    const chain = createChain()
    chain.resume(null)
    chain.hear(message(1, null))
    expect(chain.resume({ epoch: 1, position: 1n })).toBeNull()
    expect(chain.resume({ epoch: 1, position: 4n })).toEqual({ from: 1n, to: 4n })
    expect(chain.hear(message(5, 4)).gap).toBeNull()
    expect(chain.resume(null)).toEqual({ from: 5n, to: null })
  })
})

describe('the mark beside the channel', () => {
  it('is an epoch and a position, or nothing', () => {
    expect(readMark('3:9223372036854775807')).toEqual({ epoch: 3, position: 9223372036854775807n })
    for (const text of [null, '', '3', ':4', '3:4:5', 'a:b', '-1:2']) expect(readMark(text)).toBeNull()
  })
})

describe('an error of Redis', () => {
  it('is told by a word, whoever said it', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:6379'), { code: 'ECONNREFUSED' })
    const answer = new SimpleError('WRONGPASS invalid username-password pair')
    expect(toRedisError(refused).reason).toBe('ECONNREFUSED')
    expect(toRedisError(new AggregateError([refused])).reason).toBe('ECONNREFUSED')
    expect(toRedisError(answer).reason).toBe('WRONGPASS')
    expect(toRedisError(new TypeError('Invalid URL redis://:canary@x')).message).not.toContain('canary')
    expect(toRedisError(new SocketTimeoutError(5)).reason).toBe('SocketTimeoutError')
    expect(toRedisError('canary').reason).toBe('Unknown')
  })
})
