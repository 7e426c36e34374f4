/** Folding a batch, without a database. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitEvent, metadataFromStored } from '../../src/events/index.ts'
import { type Fold, foldEvents } from '../../src/projections/fold.ts'

const count: Fold = {
  projection: 'counts',
  keyOf: ({ aggregateId }) => aggregateId ?? '',
  apply: (state, { type }) => (type === 'lamp.removed' ? null : Number(state ?? 0) + 1),
}

describe('a batch', () => {
  it('is folded onto what is stored, each id by itself', () => {
    const folded = foldEvents(count, new Map([['a', 10]]), events('a+ b+ a+'))
    expect([...folded]).toEqual([
      ['a', { state: 12, position: 3n }],
      ['b', { state: 1, position: 2n }],
    ])
  })

  it('deletes with null, and may begin again after it', () => {
    expect(foldEvents(count, new Map([['a', 10]]), events('a-')).get('a')).toEqual({ state: null, position: 1n })
    expect(foldEvents(count, new Map([['a', 10]]), events('a- a+')).get('a')).toEqual({ state: 1, position: 2n })
  })

  it('writes nothing for an id that has no state before and after', () => {
    expect(foldEvents(count, new Map(), events('a+ a-')).size).toBe(0)
  })

  it('knows only ids of its own, whatever they are called', () => {
    const folded = foldEvents(count, new Map(), events('__proto__+ constructor+'))
    expect([...folded.keys()]).toEqual(['__proto__', 'constructor'])
    expect(folded.get('constructor')?.state).toBe(1)
  })

  it('refuses a promise and undefined, by the name of the projection', () => {
    const returning = (value: unknown) => () => foldEvents({ ...count, apply: () => value }, new Map(), events('a+'))
    expect(returning(Promise.resolve(1))).toThrow(/"counts" returned a promise/)
    expect(returning(undefined)).toThrow(/"counts" returned undefined/)
    expect(returning(0)).not.toThrow()
  })

  it('gives the same states however the events are cut into batches', () => {
    const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('+', '-'))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.array(fc.nat(40), { maxLength: 6 }), (steps, cuts) => {
        const all = events(steps.map(([id, sign]) => id + sign).join(' '))
        const whole = store(new Map(), all)
        const pieces = new Map<string, unknown>()
        const edges = [0, ...cuts.sort((a, b) => a - b), all.length]
        for (let i = 0; i + 1 < edges.length; i++) store(pieces, all.slice(edges[i], edges[i + 1]))
        expect(pieces).toEqual(whole)
      }),
    )
  })
})

/** What the database does with a folded batch. */
function store(states: Map<string, unknown>, batch: readonly AftercommitEvent[]): Map<string, unknown> {
  for (const [id, { state }] of foldEvents(count, states, batch)) {
    if (state === null) states.delete(id)
    else states.set(id, state)
  }
  return states
}

/** `a+` is an event that counts for a, `a-` one that removes it. */
function events(script: string): AftercommitEvent[] {
  const steps = script.split(' ').filter((step) => step !== '')
  return steps.map((step, i) => {
    return new AftercommitEvent({
      id: `event-${i + 1}`,
      type: step.endsWith('-') ? 'lamp.removed' : 'lamp.lit',
      position: BigInt(i + 1),
      aggregateType: 'lamp',
      aggregateId: step.slice(0, -1),
      version: null,
      payload: {},
      changes: null,
      previous: null,
      tenant: null,
      metadata: metadataFromStored({}),
      occurredAt: new Date(0),
      recordedAt: new Date(0),
    })
  })
}
