import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  AftercommitEvent,
  ExactNumber,
  isUndecodable,
  ownCopy,
  StoredEvent,
  type StoredFields,
  toStoredEvent,
  Undecodable,
} from '../../src/events/index.ts'
import { sampleEvent } from './sample-event.ts'

function storedEvent(fields: Partial<StoredFields> = {}): StoredEvent {
  const { id, type, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt } = sampleEvent()
  return new StoredEvent({
    ...{ id, type, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt },
    payload: '{"total": 90, "note": "secret-payload"}',
    changes: '{"status": {"new": "secret-new", "old": "secret-old"}}',
    previous: '{"status": "secret-previous"}',
    metadata: '{"user_id": "secret-user", "correlation_id": "corr-1"}',
    ...fields,
  })
}

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('an event over its stored text', () => {
  it('reads each part, and gives the same object whenever it is looked at', () => {
    const event = storedEvent()
    expect(event).toBeInstanceOf(AftercommitEvent)
    expect(event.payload).toEqual({ total: 90, note: 'secret-payload' })
    expect(event.changes).toEqual({ status: { old: 'secret-old', new: 'secret-new' } })
    expect(event.previous).toEqual({ status: 'secret-previous' })
    expect(event.metadata).toMatchObject({ userId: 'secret-user', correlationId: 'corr-1', depth: 0 })
    expect(event.payload).toBe(event.payload)
    expect(event.metadata).toBe(event.metadata)
  })

  it('is null where null is stored, and where nothing is', () => {
    expect(storedEvent({ payload: 'null' }).payload).toBeNull()
    const { payload, changes, previous } = storedEvent({ payload: null, changes: null, previous: null })
    expect([payload, changes, previous]).toEqual([null, null, null])
  })

  it('keeps numbers that no double can hold', () => {
    const { payload } = storedEvent({ payload: '{"id": 9007199254740993, "rate": 0.1000000000000000000001}' })
    expect(payload).toEqual({ id: 9007199254740993n, rate: new ExactNumber('0.1000000000000000000001') })
  })

  it('does not differ from one that nobody has looked at', () => {
    const event = storedEvent()
    expect([event.payload, event.changes, event.previous, event.metadata]).not.toContain(undefined)
    expect(event).toEqual(storedEvent())
  })

  it.each([
    ['JSON.stringify', (event: StoredEvent) => JSON.stringify({ event })],
    ['inspect', (event: StoredEvent) => inspect(event, { showHidden: true, depth: null, getters: true })],
    ['inspect of a spread', (event: StoredEvent) => inspect({ ...event }, { showHidden: true, depth: null })],
    ['inspect of Object.assign', (event: StoredEvent) => inspect(Object.assign({}, event), { depth: null })],
    ['JSON.stringify of a spread', (event: StoredEvent) => JSON.stringify({ ...event, position: '42' })],
  ])('is printed by %s without its secrets, before and after it was looked at', (_, print) => {
    const event = storedEvent()
    expect(print(event)).not.toContain('secret')
    expect(event.payload).toBeDefined()
    expect(print(event)).not.toContain('secret')
  })

  it('leaves the payload behind when it is spread, like any event', () => {
    const spread: Record<string, unknown> = { ...storedEvent() }
    expect(Object.keys(spread).sort()).toEqual(Object.keys({ ...sampleEvent() }).sort())
    expect(spread.payload).toBeUndefined()
  })
})

describe('a copy of an event', () => {
  it('has nothing in common with the first that could be changed', () => {
    const event = storedEvent()
    const copy = ownCopy(event)
    Object.assign(copy.payload as object, { total: 0 })
    Object.assign(copy.metadata, { userId: 'somebody else' })
    Object.assign(copy.changes!, { status: 'gone' })
    copy.occurredAt.setTime(0)
    copy.recordedAt.setTime(0)
    Object.assign(copy, { id: 'another' })
    expect(event).toEqual(storedEvent())
    expect(event.payload).toEqual({ total: 90, note: 'secret-payload' })
    expect(ownCopy(event)).toEqual(storedEvent())
  })

  it('is the event itself when that was never stored', () => {
    const event = sampleEvent()
    expect(ownCopy(event)).toBe(event)
  })
})

describe('an event that came in one piece', () => {
  it('is the same once it stands over text, exact numbers included', () => {
    const event = sampleEvent({
      payload: { id: 9007199254740993n, rate: new ExactNumber('0.1000000000000000000001') },
      previous: null,
    })
    const stored = toStoredEvent(event)
    for (const part of ['id', 'position', 'payload', 'changes', 'previous', 'metadata', 'occurredAt'] as const) {
      expect(stored[part]).toEqual(event[part])
    }
    expect(ownCopy(stored).payload).not.toBe(stored.payload)
  })
})

describe('a payload that cannot be read', () => {
  it.each([
    [1_000, false],
    [1_001, true],
    [5_000, true],
  ])('of %i levels: %s', (levels, expected) => {
    const event = storedEvent({ payload: nested(levels) })
    expect(isUndecodable(event)).toBe(expected)
    expect(event.payload instanceof Undecodable).toBe(expected)
  })

  it('keeps at most 65,536 characters of what cannot be read', () => {
    const event = storedEvent({ payload: `${'['.repeat(70_000)}${']'.repeat(70_000)}` })
    expect((event.payload as Undecodable).raw).toBe('['.repeat(65_536))
  })

  it('is not looked for where the text is missing or was read before', () => {
    expect(isUndecodable(storedEvent({ payload: null }))).toBe(false)
    expect(isUndecodable(sampleEvent())).toBe(false)
    expect(isUndecodable(sampleEvent({ payload: new Undecodable('too deep', '[[') }))).toBe(true)
  })
})
