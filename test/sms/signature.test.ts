import { describe, expect, it } from 'vitest'
import { isSignature, signCallback } from '../../src/sms/signature.ts'

describe('the signature of a callback', () => {
  it('is the one that the documentation of the API gives as its example', () => {
    const parameters = new URLSearchParams({
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675309',
      Digits: '1234',
      From: '+14158675309',
      To: '+18005551212',
    })
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2'
    expect(signCallback('12345', url, parameters)).toBe('RSOYDt4T1cUTdK1PDd93/VVr8B8=')
  })

  it('does not depend on the order of parameters, and counts a value that comes twice once', () => {
    const sign = (text: string) => signCallback('t', 'https://a.example/', new URLSearchParams(text))
    expect(sign('b=2&a=1')).toBe(sign('a=1&b=2'))
    expect(sign('a=1&a=1')).toBe(sign('a=1'))
    expect(sign('a=2&a=1')).toBe(sign('a=1&a=2'))
    expect(sign('a=1&b=2')).not.toBe(sign('a=1&b=3'))
  })

  it('is compared as a whole', () => {
    expect(isSignature('abc', 'abc')).toBe(true)
    for (const given of ['', 'ab', 'abd', 'abcd', 'äbc']) expect(isSignature(given, 'abc')).toBe(false)
  })
})
