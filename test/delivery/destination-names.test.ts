import { describe, expect, it } from 'vitest'
import { destinationsMeant, toOrigin } from '../../src/delivery/destination-names.ts'

const KNOWN = [
  'cache redis://cache.internal:6379',
  'card payments',
  'email smtp',
  'observer erp',
  'search https://erp.example.com',
  'webhook https://erp.example.com',
  'webhook https://erp.example.com:8443',
]

describe('a destination', () => {
  it('is meant by its name, and by its origin together with all others there', () => {
    const erp = ['search https://erp.example.com', 'webhook https://erp.example.com']
    expect(destinationsMeant('webhook https://erp.example.com', KNOWN)).toEqual(['webhook https://erp.example.com'])
    expect(destinationsMeant('https://erp.example.com', KNOWN)).toEqual(erp)
    expect(destinationsMeant('HTTPS://ERP.example.com:443/', KNOWN)).toEqual(erp)
    expect(destinationsMeant('https://erp.example.com', [...KNOWN, 'https://erp.example.com'])).toEqual([
      'https://erp.example.com',
      ...erp,
    ])
    expect(destinationsMeant('redis://cache.internal:6379', KNOWN)).toEqual(['cache redis://cache.internal:6379'])
    expect(destinationsMeant('card payments', KNOWN)).toEqual(['card payments'])
  })

  it.each([
    ['https://erp.exmaple.com', 'https://erp.example.com'],
    ['https://erp.example.com/orders', 'search https://erp.example.com'],
    ['http://erp.example.com', 'https://erp.example.com'],
    ['smtp', 'email smtp'],
    ['webhook', 'webhook https://erp.example.com'],
    ['card paymnts', 'card payments'],
  ])('that nobody knows, %s, is refused with the nearest', (given, nearest) => {
    expect(() => destinationsMeant(given, KNOWN)).toThrow(
      expect.objectContaining({
        code: 'UNKNOWN_DESTINATION',
        message: expect.stringContaining(`Did you mean "${nearest}"?`),
      }),
    )
  })

  it('is refused without advice where nothing is near', () => {
    expect(() => destinationsMeant('https://x.example', [])).toThrow(
      /goes to "https:\/\/x\.example".* See: aftercommit/,
    )
    expect(() => destinationsMeant('zebra', KNOWN)).not.toThrow(/Did you mean/)
  })
})

it('an origin has no path, no user and no query', () => {
  for (const text of ['https://x/y', 'https://u:p@x', 'https://x?y', 'x.example', 'webhook https://x', 'https://'])
    expect(toOrigin(text), text).toBeUndefined()
})
