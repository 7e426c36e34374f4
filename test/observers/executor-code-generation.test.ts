import { expect, it } from 'vitest'

const isForbidden = process.env.AFTERCOMMIT_TEST_NO_CODE === 'yes'

it.runIf(isForbidden)('observers are tested in a process where no text becomes code', () => {
  expect(() => Reflect.construct(Function, ['return 1'])).toThrow(EvalError)
})
