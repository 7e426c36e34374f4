import { expect, it } from 'vitest'

const isForbidden = process.env.NODE_OPTIONS?.includes('--disallow-code-generation-from-strings') === true

it.runIf(isForbidden)('no text becomes code in this process', () => {
  expect(() => Reflect.construct(Function, ['return 1'])).toThrow(EvalError)
})
