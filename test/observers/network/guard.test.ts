import { describe, expect, it } from 'vitest'
import { judgeAddress, judgeUrl, parseRules } from '../../../src/observers/network/index.ts'

const nothing = parseRules([])

describe('the network guard', () => {
  it.each([
    ...[
      '127.0.0.1',
      '127.1',
      '0',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '127.0.0.1.',
      '０１７７.0.0.1',
      '１２７.0.0.1',
    ],
    ...[
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[fe80::1%25lo]',
    ],
    ...['[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[fec0::1]', '[2002:7f00:1::]', '[2001::1]', '[64:ff9b:1::1]'],
    ...['169.254.169.254', '168.63.129.16', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '192.0.0.1'],
    ...['198.18.0.1', '224.0.0.1', '240.0.0.1', '255.255.255.255', '0.0.0.0', '192.0.2.1', '[ff02::1]', '[5f00::1]'],
    ...[
      'localhost',
      'localhost.',
      'LOCALHOST',
      'a.localhost',
      'user@127.0.0.1',
      'example.com@127.0.0.1',
      'example.com\\@127.0.0.1',
    ],
  ])('refuses http://%s/ before anything is resolved', (host) => {
    expect(judgeUrl(`http://${host}/`, nothing)).toBeTypeOf('string')
  })

  it.each([
    'http://example.com/',
    'https://93.184.216.34/x?y=1',
    'https://[2606:4700::1111]/',
    'https://a.example:8443/',
  ])('lets %s pass', (url) => expect(judgeUrl(url, nothing)).toBeUndefined())

  it.each([
    ...[
      'ftp://example.com/',
      'file:///etc/passwd',
      'gopher://example.com/',
      'javascript:alert(1)',
      'data:text/plain,x',
    ],
    ...['http+unix://%2Fvar%2Frun%2Fdocker.sock/', 'example.com', '//example.com/', '', 'http://', 'http:///'],
    ...[
      'http://example.com/\r\nx: y',
      'http://exa\tmple.com/',
      ' http://example.com/',
      'http://example.com\\@evil.example/',
    ],
    ...[
      'https://user:pw@example.com/',
      'https://token@example.com/',
      'http://example.com:25/',
      'http://example.com:0/',
    ],
  ])('refuses %j as an address', (url) => expect(judgeUrl(url, nothing)).toBeTypeOf('string'))

  it('judges IPv4 in an IPv6 coat by what it leads to', () => {
    expect(judgeAddress('::ffff:8.8.8.8', 'a.example', nothing)).toBeUndefined()
    expect(judgeAddress('64:ff9b::808:808', 'a.example', nothing)).toBeUndefined()
    expect(judgeAddress('64:ff9b::a00:1', 'a.example', nothing)).toContain('private network')
    expect(judgeAddress('::ffff:a9fe:a9fe', 'a.example', nothing)).toContain('service of the cloud')
  })

  it('refuses what is no address at all', () => {
    for (const address of ['', 'undefined', '999.1.1.1', 'fe80::1%lo']) {
      expect(judgeAddress(address, 'a.example', nothing)).toBeTypeOf('string')
    }
  })

  it('says why in words that hold nothing of the address', () => {
    expect(judgeUrl('http://127.0.0.1/secret-path', nothing)).toBe('it leads to this machine')
  })
})

describe('the list of allowed addresses', () => {
  it('opens single addresses and ranges, and nothing beside them', () => {
    const rules = parseRules(['127.0.0.1', '10.20.0.0/16', 'fd12::/32'])
    expect(judgeUrl('http://127.0.0.1:8080/', rules)).toBeUndefined()
    expect(judgeUrl('http://[::ffff:127.0.0.1]/', rules)).toBeUndefined()
    expect(judgeUrl('http://10.20.255.1/', rules)).toBeUndefined()
    expect(judgeUrl('http://[fd12::1]/', rules)).toBeUndefined()
    for (const host of ['127.0.0.2', '10.21.0.1', '[::1]', '[fd13::1]', 'localhost']) {
      expect(judgeUrl(`http://${host}/`, rules), host).toBeTypeOf('string')
    }
  })

  it('opens private networks to a name, but never what clouds keep credentials on', () => {
    const rules = parseRules(['ERP.internal.', 'localhost'])
    expect(judgeAddress('10.1.2.3', 'erp.internal', rules)).toBeUndefined()
    expect(judgeAddress('127.0.0.1', 'erp.internal.', rules)).toBeUndefined()
    expect(judgeUrl('http://localhost:3000/', rules)).toBeUndefined()
    expect(judgeAddress('10.1.2.3', 'other.internal', rules)).toContain('private network')
    expect(judgeAddress('169.254.1.1', 'erp.internal', rules)).toContain('link-local')
  })

  it.each([
    ...['169.254.169.254', '168.63.129.16', '100.100.100.200', '::ffff:100.100.100.200', '64:ff9b::6464:64c8'],
    ...['192.0.0.192', '2002:a9fe:a9fe::', '64:ff9b:1::a9fe:a9fe', '::a9fe:a9fe'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42'],
  ])('opens %s, where a cloud keeps credentials, to an entry of its own and to no name or range', (address) => {
    const wide = [
      'erp.internal',
      '100.64.0.0/10',
      '169.254.0.0/16',
      '168.63.0.0/16',
      'fc00::/7',
      '64:ff9b::/96',
      '192.0.0.0/24',
      '2002::/16',
      '64:ff9b:1::/48',
      '::/96',
    ]
    expect(judgeAddress(address, 'erp.internal', parseRules(wide))).toContain('service of the cloud')
    expect(judgeAddress(address, 'erp.internal', parseRules([address]))).toBeUndefined()
    expect(judgeAddress('100.100.100.201', 'erp.internal', parseRules(wide))).toBeUndefined()
  })

  it.each([
    'http://erp.internal',
    'erp.internal:8080',
    '*.internal',
    '10.0.0.0/33',
    '010.0.0.1',
    '',
    'a b',
    '256.1.1.1/8',
  ])('refuses %j as an entry', (entry) =>
    expect(() => parseRules([entry])).toThrow(expect.objectContaining({ code: 'OB012', path: ['allow', 0] })),
  )
})
