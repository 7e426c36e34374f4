import { expect, test } from 'vitest'
import { currentCause, runWithCause } from '../../src/runtime/index.ts'

test('there is no cause outside of a handler', () => {
  expect(currentCause()).toBeUndefined()
})

test('everything awaited inside sees the cause, and two at once do not mix', async () => {
  const seen = await Promise.all(
    ['a', 'b'].map((correlationId) =>
      runWithCause({ correlationId, depth: 0 }, async () => {
        await new Promise(setImmediate)
        return currentCause()?.correlationId
      }),
    ),
  )
  expect(seen).toEqual(['a', 'b'])
  expect(currentCause()).toBeUndefined()
})

test('an inner cause hides the outer one until it returns', () => {
  runWithCause({ correlationId: 'outer', depth: 0, tenant: 'acme' }, () => {
    runWithCause({ correlationId: 'inner', depth: 1 }, () => {
      expect(currentCause()).toEqual({ correlationId: 'inner', depth: 1 })
    })
    expect(currentCause()?.correlationId).toBe('outer')
  })
})

test('a cause cannot be changed, neither through what was passed in nor through what is read', () => {
  const given = { correlationId: 'first', depth: 0 }
  runWithCause(given, () => {
    given.depth = 9
    const cause = currentCause()
    expect(cause?.depth).toBe(0)
    expect(() => Object.assign(cause ?? {}, { depth: 9 })).toThrow(TypeError)
  })
})

test('a cause that takes time to find out is asked for only when somebody wants to know', async () => {
  let asked = 0
  const cause = () => ({ correlationId: 'late', depth: ++asked })
  await runWithCause(cause, async () => {
    await new Promise(setImmediate)
    expect(asked).toBe(0)
    expect(currentCause()).toEqual({ correlationId: 'late', depth: 1 })
  })
})
