import { describe, expect, it, onTestFinished } from 'vitest'
import {
  CallFailed,
  createHttp,
  type HttpOptions,
  type HttpRequest,
  parseRules,
  toTarget,
} from '../../../src/observers/network/index.ts'
import { createTestClock, systemClock } from '../../../src/runtime/index.ts'
import { selfSigned } from '../../support/certificate.ts'
import { eventually } from '../../support/eventually.ts'
import { closedPort, httpReceiver, tcpReceiver } from '../../support/receivers.ts'

function open(options: Partial<HttpOptions> = {}) {
  const http = createHttp({ rules: parseRules(['127.0.0.1']), clock: systemClock, ...options })
  onTestFinished(() => http.close())
  return http
}

function post(url: string, change: Partial<HttpRequest> = {}): HttpRequest {
  const signal = new AbortController().signal
  return {
    method: 'POST',
    target: toTarget(new URL(url)),
    headers: [],
    body: 'hello',
    timeoutMs: 20_000,
    signal,
    ...change,
  }
}

async function failureOf(work: Promise<unknown>): Promise<CallFailed> {
  const error = await work.then(
    () => new Error('it succeeded'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(CallFailed)
  return error
}

describe('a request', () => {
  it('arrives with its method, path, query, headers and bytes', async () => {
    const receiver = await httpReceiver()
    const answer = await open().send(
      post(`${receiver.url}/a/b?c=d#e`, { method: 'PUT', headers: ['x-one', 'two'], body: 'Grüße' }),
    )
    expect(answer).toMatchObject({ status: 200, start: Buffer.from('ok') })
    expect(receiver.calls).toMatchObject([
      { method: 'PUT', path: '/a/b?c=d', body: 'Grüße', headers: { 'x-one': 'two' } },
    ])
  })

  it('uses a connection again', async () => {
    const receiver = await httpReceiver()
    const http = open()
    for (let i = 0; i < 20; i++) await http.send(post(receiver.url))
    expect(receiver.calls).toHaveLength(20)
    expect(receiver.connections).toBeLessThan(5)
  })

  it('does not keep connections once too many are open', async () => {
    const receiver = await httpReceiver()
    const http = open({ limits: { keptOpen: 0 } })
    for (let i = 0; i < 3; i++) await http.send(post(receiver.url))
    await eventually(() => receiver.open === 0)
    expect(receiver.connections).toBe(3)
  })

  it('waits for its turn where the number of requests is limited', async () => {
    let most = 0
    let now = 0
    const receiver = await httpReceiver((response) => {
      most = Math.max(most, ++now)
      setImmediate(() => {
        now--
        response.end()
      })
    })
    const http = open({ limits: { total: 3 } })
    await Promise.all(Array.from({ length: 20 }, () => http.send(post(receiver.url))))
    expect(receiver.calls).toHaveLength(20)
    expect(most).toBeLessThanOrEqual(3)
  })

  it.each([301, 302, 303, 307, 308])('answered with %i is not sent anywhere else', async (status) => {
    const elsewhere = await httpReceiver()
    const receiver = await httpReceiver((response) => {
      response.writeHead(status, { location: `${elsewhere.url}/stolen` }).end()
    })
    const answer = await open().send(post(receiver.url, { headers: ['authorization', 'Bearer canary'] }))
    expect(answer.status).toBe(status)
    expect(elsewhere.connections).toBe(0)
  })

  it('takes no notice of the proxies of the environment', async () => {
    const proxy = await httpReceiver()
    const receiver = await httpReceiver()
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
    for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : proxy.url
    onTestFinished(() => {
      for (const name of names) delete process.env[name]
    })
    await open().send(post(receiver.url))
    expect(receiver.calls).toHaveLength(1)
    expect(proxy.connections).toBe(0)
  })
})

describe('an endpoint that misbehaves', () => {
  it('and never answers is given up at the deadline, and its connection closed', async () => {
    const receiver = await httpReceiver(() => {})
    const error = await failureOf(open().send(post(receiver.url, { timeoutMs: 100 })))
    expect(error).toMatchObject({ timedOut: true, code: 'TIMED_OUT' })
    await eventually(() => receiver.open === 0)
  })

  it('and drips its headers is given up at the deadline', async () => {
    const receiver = await tcpReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const drip = setInterval(() => socket.write('x'), 10)
      socket.on('close', () => clearInterval(drip))
    })
    const error = await failureOf(open().send(post(receiver.url, { timeoutMs: 200 })))
    expect(error.timedOut).toBe(true)
    await eventually(() => receiver.open === 0)
  })

  it('and drips its body has answered; the rest is cut off at the deadline', async () => {
    const clock = createTestClock()
    const receiver = await httpReceiver((response) => {
      response.writeHead(503, { 'retry-after': '7' }).flushHeaders()
      let drops = 0
      const drip = setInterval(() => {
        response.write('x')
        // By now the event loop has turned often enough for the status to have arrived.
        if (++drops === 10) void clock.advance(300)
      }, 10)
      response.on('close', () => clearInterval(drip))
    })
    const answer = await open({ clock }).send(post(receiver.url, { timeoutMs: 300 }))
    expect(answer).toMatchObject({ status: 503, retryAfter: '7' })
    await eventually(() => receiver.open === 0)
  })

  it('and answers without end is cut off after 64 kB', async () => {
    let written = 0
    const receiver = await httpReceiver((response) => {
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384))) written += 16_384
      }
      response.on('drain', pour)
      pour()
    })
    const answer = await open().send(post(receiver.url))
    expect(answer.status).toBe(200)
    expect(answer.start.length).toBeLessThanOrEqual(1_024)
    await eventually(() => receiver.open === 0)
    expect(written).toBeLessThan(50_000_000)
  })

  it('and sends headers without end fails', async () => {
    const receiver = await tcpReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const line = `x-more: ${'y'.repeat(1_000)}\r\n`
      const pour = () => {
        while (!socket.destroyed && socket.write(line));
      }
      socket.on('drain', pour)
      pour()
    })
    const error = await failureOf(open().send(post(receiver.url)))
    expect(error.timedOut).toBe(false)
    await eventually(() => receiver.open === 0)
  })

  it('and floods with interim answers fails', async () => {
    const receiver = await tcpReceiver((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(1_000))
    })
    expect(await failureOf(open().send(post(receiver.url)))).toMatchObject({ code: 'TOO_MANY_INTERIM_ANSWERS' })
  })

  it('may send a few interim answers', async () => {
    const receiver = await tcpReceiver((socket) => {
      socket.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3)}HTTP/1.1 204 No Content\r\n\r\n`)
    })
    expect((await open().send(post(receiver.url))).status).toBe(204)
  })

  it.each([
    ['speaks HTTP/0.9', 'hello there\n'],
    ['answers with nonsense', '\u0000\u0001\u0002\u0003'],
    ['upgrades without being asked', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['says nothing and hangs up', ''],
  ])('and %s fails with a code', async (_, text) => {
    const receiver = await tcpReceiver((socket) => socket.end(text))
    const error = await failureOf(open().send(post(receiver.url)))
    expect(error.timedOut).toBe(false)
    expect(error.code).toMatch(/^[A-Z0-9_]+$/)
    expect(error.code).not.toBe('UNKNOWN')
  })

  it('and breaks its chunks has answered with its status', async () => {
    const receiver = await tcpReceiver((socket) => {
      socket.end('HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\nnot a chunk')
    })
    expect((await open().send(post(receiver.url))).status).toBe(500)
  })

  it('and resets the connection fails with the code of the system', async () => {
    const receiver = await tcpReceiver((socket) => socket.resetAndDestroy())
    expect(await failureOf(open().send(post(receiver.url)))).toMatchObject({ code: 'ECONNRESET', timedOut: false })
  })

  it('and is not there fails with the code of the system', async () => {
    const error = await failureOf(open().send(post(`http://127.0.0.1:${await closedPort()}/`)))
    expect(error.code).toBe('ECONNREFUSED')
  })
})

describe('the caller’s signal', () => {
  it('ends a request with its reason', async () => {
    const receiver = await httpReceiver(() => {})
    const stopping = new AbortController()
    const sending = open().send(post(receiver.url, { signal: stopping.signal }))
    await eventually(() => receiver.calls.length === 1)
    stopping.abort(new Error('stopping'))
    await expect(sending).rejects.toThrow('stopping')
    await eventually(() => receiver.open === 0)
  })

  it('that has fired already sends nothing', async () => {
    const receiver = await httpReceiver()
    await expect(open().send(post(receiver.url, { signal: AbortSignal.abort(new Error('over')) }))).rejects.toThrow(
      'over',
    )
    expect(receiver.connections).toBe(0)
  })
})

describe('closing', () => {
  it('ends what is under way, and may be repeated', async () => {
    const receiver = await httpReceiver(() => {})
    const http = open()
    const sending = failureOf(http.send(post(receiver.url)))
    await eventually(() => receiver.calls.length === 1)
    await http.close()
    await http.close()
    await sending
    await eventually(() => receiver.open === 0)
  })
})

describe('TLS', () => {
  it('trusts a certificate of the given authority for its name', async () => {
    const { key, cert } = selfSigned({ ip: '127.0.0.1' })
    const receiver = await httpReceiver(undefined, { tls: { key, cert } })
    expect((await open({ ca: cert }).send(post(receiver.url))).status).toBe(200)
  })

  it('refuses a certificate that nobody vouches for, and one of another name', async () => {
    const unknown = selfSigned({ ip: '127.0.0.1' })
    const stranger = await httpReceiver(undefined, { tls: unknown })
    expect(await failureOf(open().send(post(stranger.url)))).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const other = selfSigned({ dns: 'other.example' })
    const misnamed = await httpReceiver(undefined, { tls: other })
    const error = await failureOf(open({ ca: other.cert }).send(post(misnamed.url)))
    expect(error.code).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    expect([...stranger.calls, ...misnamed.calls]).toEqual([])
  })

  it('fails where the other side does not speak it', async () => {
    const receiver = await tcpReceiver((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'))
    const error = await failureOf(open().send(post(receiver.url.replace('http:', 'https:'))))
    expect(error.code).not.toBe('UNKNOWN')
  })
})
