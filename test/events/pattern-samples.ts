import fc from 'fast-check'

// Few letters and many versions, so that patterns and names meet often.
const word = fc.constantFrom('a', 'b', 'ab', 'a_b', 'v1', 'v2', 'v10', 'v0', 'av1')
const wildcard = fc.constantFrom('*', '**', 'a*', '*a', '*b*', 'a*b', '*v1')

export const names = fc.array(word, { minLength: 1, maxLength: 5 }).map((segments) => segments.join('.'))

export const patterns = fc
  .array(fc.oneof(word, wildcard), { minLength: 1, maxLength: 5 })
  .map((segments) => segments.join('.'))
