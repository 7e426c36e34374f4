import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  CallFailed,
  createHttp,
  type Http,
  parseRules,
  RefusedAddress,
  type ResolverOptions,
  toTarget,
} from '../../../src/observers/network/index.ts'
import { systemClock } from '../../../src/runtime/index.ts'
import { eventually } from '../../support/eventually.ts'
import { httpReceiver } from '../../support/receivers.ts'
import { dnsReceiver } from '../../support/receivers-dns.ts'

function open(dns: ResolverOptions, allow: readonly string[] | null = []): Http {
  const http = createHttp({ rules: allow && parseRules(allow), clock: systemClock, dns })
  onTestFinished(() => http.close())
  return http
}

function get(http: Http, url: string, timeoutMs = 20_000): Promise<unknown> {
  const signal = new AbortController().signal
  return http.send({ method: 'GET', target: toTarget(new URL(url)), headers: [], body: null, timeoutMs, signal })
}

function hostsFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ac-hosts-'))
  const file = join(folder, 'hosts')
  writeFileSync(file, text)
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return file
}

const noHosts = '/nonexistent/hosts'

describe('a name', () => {
  it.each([
    ['this machine', ['127.0.0.1']],
    ['a private network', ['10.1.2.3']],
    ['a metadata service', ['169.254.169.254']],
    ['this machine over IPv6', ['::1']],
    ['this machine in an IPv6 coat', ['::ffff:7f00:1']],
    ['a public and a private address', ['93.184.216.34', '127.0.0.1']],
  ])('that leads to %s is refused, and nothing connects', async (_, addresses) => {
    const receiver = await httpReceiver()
    const { server, questions } = await dnsReceiver(() => addresses)
    const http = open({ servers: [server], hostsFile: noHosts })
    await expect(get(http, `http://rebind.example:${receiver.port}/`)).rejects.toBeInstanceOf(RefusedAddress)
    expect(questions).toContain('A rebind.example')
    expect(receiver.connections).toBe(0)
  })

  it('is resolved once for the check and the call, so changing its mind does not help', async () => {
    const receiver = await httpReceiver(undefined, { host: '127.0.0.1' })
    // Allowed at the first question, loopback at every later one.
    const { server, questions } = await dnsReceiver((_, times) => [times === 1 ? '127.0.0.9' : '127.0.0.1'])
    const http = open({ servers: [server], hostsFile: noHosts }, ['127.0.0.9'])
    await expect(get(http, `http://rebind.example:${receiver.port}/`)).rejects.toBeInstanceOf(CallFailed)
    expect(questions.filter((question) => question.startsWith('A '))).toHaveLength(1)
    await expect(get(http, `http://rebind.example:${receiver.port}/`)).rejects.toBeInstanceOf(RefusedAddress)
    expect(receiver.connections).toBe(0)
  })

  it('that the operator allows is called', async () => {
    const receiver = await httpReceiver()
    const { server } = await dnsReceiver(() => ['127.0.0.1'])
    const http = open({ servers: [server], hostsFile: noHosts }, ['erp.internal'])
    await get(http, `http://ERP.internal.:${receiver.port}/`)
    expect(receiver.calls).toHaveLength(1)
  })

  it('of the hosts file is called without asking anybody', async () => {
    const receiver = await httpReceiver()
    const { server, questions } = await dnsReceiver(() => [])
    const file = hostsFile('# 10.0.0.1 erp.test\n127.0.0.1\tother.test ERP.test # here\n')
    await get(open({ servers: [server], hostsFile: file }, ['127.0.0.1']), `http://erp.test:${receiver.port}/`)
    expect(receiver.calls).toHaveLength(1)
    expect(questions).toEqual([])
  })

  it('of an operator’s own provider may lead anywhere', async () => {
    const receiver = await httpReceiver()
    const { server } = await dnsReceiver(() => ['127.0.0.1'])
    await get(open({ servers: [server], hostsFile: noHosts }, null), `http://smtp.internal:${receiver.port}/`)
    expect(receiver.calls).toHaveLength(1)
  })

  it('that does not exist is a failure of the network', async () => {
    const { server } = await dnsReceiver(() => [])
    const calling = get(open({ servers: [server], hostsFile: noHosts }), 'http://no-such-name.invalid/')
    await expect(calling).rejects.toMatchObject({ name: 'CallFailed', code: expect.stringMatching(/^E[A-Z_]+$/) })
  })

  it('that is dead is told apart from a name server that is away, which is a fault of this host', async () => {
    const dead = await dnsReceiver((name) => (name === 'dead.example' ? 'silent' : []))
    const away = await dnsReceiver(() => 'silent')
    await Promise.all([
      expect(get(open({ servers: [dead.server], hostsFile: noHosts }), 'http://dead.example/')).rejects.toMatchObject({
        code: 'ETIMEOUT',
        local: false,
      }),
      expect(get(open({ servers: [away.server], hostsFile: noHosts }), 'http://any.example/')).rejects.toMatchObject({
        code: 'NAME_SERVER_AWAY',
        local: true,
      }),
    ])
  })

  it('that nobody answers for is given up at the deadline, and nothing is sent later', {
    timeout: 30_000,
  }, async () => {
    const receiver = await httpReceiver()
    let questions = 0
    const { server } = await dnsReceiver(() => (++questions > 2 ? ['127.0.0.1'] : 'silent'))
    const http = open({ servers: [server], hostsFile: noHosts }, ['127.0.0.1'])
    await expect(get(http, `http://slow.example:${receiver.port}/`, 100)).rejects.toMatchObject({ timedOut: true })
    // The resolver asks again after two seconds and is answered then; the connection it makes must stay unused.
    await eventually(() => receiver.connections > 0)
    await eventually(() => receiver.open === 0)
    expect(receiver.calls).toEqual([])
  })
})

it('hundreds of dead names do not keep a healthy one waiting', { timeout: 30_000 }, async () => {
  const receiver = await httpReceiver()
  const { server, questions } = await dnsReceiver((name) => (name === 'healthy.example' ? ['127.0.0.1'] : 'silent'))
  const http = open({ servers: [server], hostsFile: noHosts }, ['127.0.0.1'])
  let ended = 0
  const dead: Promise<void>[] = []
  // In groups: a burst of 400 packets overflows the buffer of the name server of this test.
  for (let group = 0; group < 4; group++) {
    for (let i = 0; i < 50; i++) {
      const call = get(http, `http://dead-${group}-${i}.example/`, 60_000)
      dead.push(call.then(Boolean, () => true).then(() => void ended++))
    }
    await eventually(() => questions.some((asked) => asked.includes(`dead-${group}-49.`)))
  }
  for (let i = 0; i < 10; i++) await get(http, `http://healthy.example:${receiver.port}/`)
  expect(receiver.calls).toHaveLength(10)
  expect(ended).toBe(0)
  await http.close()
  await Promise.all(dead)
})

it('an address that slipped past the check of the URL is refused before it connects', async () => {
  const receiver = await httpReceiver()
  const http = open({})
  for (const host of ['127.0.0.1', '[::ffff:7f00:1]', '2130706433', 'localhost', '0x7f.1']) {
    await expect(get(http, `http://${host}:${receiver.port}/`), host).rejects.toBeInstanceOf(RefusedAddress)
  }
  expect(receiver.connections).toBe(0)
})
