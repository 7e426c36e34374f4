import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseMailbox } from '../../../src/observers/actions/mailbox.ts'
import { createMailer } from '../../../src/observers/actions/mailer.ts'
import { systemClock } from '../../../src/runtime/index.ts'
import { selfSigned } from '../../support/certificate.ts'
import { eventually } from '../../support/eventually.ts'
import { closedPort, tcpReceiver } from '../../support/receivers.ts'
import { type SmtpScript, smtpReceiver } from '../../support/receivers-smtp.ts'
import { failureOf, prepare, requestFor } from './support.ts'

const emailTemplates = {
  shipped: {
    subject: 'Order {{ number }} is on its way',
    html: '<p>{{ name }} {{ greeting }}</p>',
    text: '{{ greeting }}',
  },
}

async function mailWith(config: Record<string, unknown>, script: SmtpScript = {}) {
  const server = await smtpReceiver(script)
  const providers = { smtp: { url: { reveal: () => server.url }, from: 'Shop <shop@example.com>' } }
  return { server, action: prepare('email', config, { providers, emailTemplates }) }
}

const plain = { to: 'ada@example.com', subject: 'Hello', text: 'Hi' }

describe('an e-mail', () => {
  it.each(['smtps', 'smtp'] as const)('to a server whose certificate is not trusted says so (%s)', async (scheme) => {
    const { key, cert } = selfSigned({ ip: '127.0.0.1' })
    const server = new SMTPServer({ secure: scheme === 'smtps', authOptional: true, key, cert })
    server.on('error', () => {})
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
    const url = `${scheme}://127.0.0.1:${(server.server.address() as AddressInfo).port}`
    const providers = { smtp: { url: { reveal: () => url }, from: 'Shop <shop@example.com>' } }
    const error = await failureOf(() => prepare('email', plain, { providers }).run(requestFor()))
    expect(error).toMatchObject({ code: 'OB007', transient: true })
    expect(error.message).toMatch(
      /certificate of the mail server is not trusted \(\w*SELF_SIGNED\w*\).*NODE_EXTRA_CA_CERTS/,
    )
  })

  it('arrives with its recipients, subject and both bodies rendered', async () => {
    const { server, action } = await mailWith({
      to: ['{{ customer.name }} <{{ customer.email }}>', 'archive@example.com'],
      subject: 'Grüße, {{ customer.name }}',
      text: 'Total {{ total }} & more',
      html: '<b>{{ customer.name }}</b>',
    })
    const payload = { customer: { name: 'Ada & Co', email: 'ada@example.com' }, total: 90 }
    const result = await action.run(requestFor({ payload }))
    expect(result).toMatchObject({ actionType: 'email', success: true, message: 'taken for 2 recipients' })
    const [mail] = server.mails
    expect(mail).toMatchObject({ from: 'shop@example.com', to: ['ada@example.com', 'archive@example.com'] })
    expect(mail?.raw).toMatch(/^From: Shop <shop@example.com>/m)
    expect(mail?.raw).toContain('=?UTF-8?')
    expect(mail?.raw).toContain('Total 90 & more')
    expect(mail?.raw).toContain('<b>Ada &amp; Co</b>')
  })

  it('may come from a template with data of its own, which wins over the payload', async () => {
    const { server, action } = await mailWith({
      to: '{{ email }}',
      template: 'shipped',
      data: { greeting: 'Dear {{ name }}', number: '{{ event.aggregate_id }}' },
    })
    const payload = { email: 'ada@example.com', name: '<Ada>', greeting: 'not this' }
    await action.run(requestFor({ payload, aggregate: { type: 'order', id: '42' } }))
    expect(server.mails[0]?.raw).toContain('Subject: Order 42 is on its way')
    expect(server.mails[0]?.raw).toContain('<p>&lt;Ada&gt; Dear &lt;Ada&gt;</p>')
    expect(server.mails[0]?.raw).not.toContain('not this')
  })

  it('has the same Message-ID at every attempt, and another for another event', async () => {
    const { server, action } = await mailWith(plain)
    for (const change of [{}, { attempt: 2 }, { id: 'evt-2' }]) await action.run(requestFor(change))
    const ids = server.mails.map(({ raw }) => /^Message-ID: (.*)$/m.exec(raw)?.[1])
    expect(ids[0]).toMatch(/^<msg_[\w-]{32}@example\.com>$/)
    expect(ids[1]).toBe(ids[0])
    expect(ids[2]).not.toBe(ids[0])
  })

  it('shares connections with others', async () => {
    const { server, action } = await mailWith(plain)
    await Promise.all(Array.from({ length: 30 }, (_, i) => action.run(requestFor({ id: `evt-${i}` }))))
    expect(server.mails).toHaveLength(30)
    expect(server.connections).toBeLessThanOrEqual(5)
  })

  it('can be previewed', async () => {
    const { server, action } = await mailWith(plain)
    expect(action.preview(requestFor()).content).toMatchObject({
      subject: 'Hello',
      to: [{ address: 'ada@example.com' }],
    })
    expect(server.connections).toBe(0)
  })
})

describe('a mail server', () => {
  it('that refuses for now is asked again, one that refuses for good is not', async () => {
    for (const [status, transient] of [
      [451, true],
      [452, true],
      [550, false],
      [554, false],
    ] as const) {
      const { action } = await mailWith(plain, { recipient: () => [status, 'canary ada@example.com'] })
      const error = await failureOf(() => action.run(requestFor()))
      expect(error).toMatchObject({ code: 'OB007', transient, status })
      expect(error.message).not.toMatch(/canary|ada@/)
      const whole = await mailWith(plain, { mail: () => [status, 'canary'] })
      expect(await failureOf(() => whole.action.run(requestFor()))).toMatchObject({ code: 'OB007', transient, status })
    }
  })

  it('that refuses one of two recipients makes it a failure', async () => {
    const config = { ...plain, to: ['ada@example.com', 'bob@example.com'] }
    const recipient = (address: string): [number, string] | undefined =>
      address.startsWith('bob') ? [550, 'no'] : undefined
    const { server, action } = await mailWith(config, { recipient })
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({ code: 'OB007', transient: false, message: expect.stringContaining('1 of 2') })
    expect(server.mails[0]?.to).toEqual(['ada@example.com'])
  })

  it('that hangs up after the final dot gets the mail again, by an attempt of ours, with the same Message-ID', async () => {
    const { server, action } = await mailWith(plain, { mail: (number) => (number === 1 ? 'cut' : undefined) })
    expect(await failureOf(() => action.run(requestFor()))).toMatchObject({ code: 'OB007', transient: true })
    expect(server.mails).toHaveLength(1)
    await action.run(requestFor({ attempt: 2 }))
    const ids = server.mails.map(({ raw }) => /^Message-ID: (.*)$/m.exec(raw)?.[1])
    expect(ids).toHaveLength(2)
    expect(new Set(ids).size).toBe(1)
  })

  it('that wants other credentials refuses for good, and they are not told', async () => {
    const server = await smtpReceiver({ user: 'shop', password: 'right' })
    const url = server.url.replace('right', 'canary-password')
    const action = prepare('email', plain, { providers: { smtp: { url, from: 'shop@example.com' } } })
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({ code: 'OB007', transient: false, status: 535 })
    expect(JSON.stringify([error.message, error.detail, String(error.cause)])).not.toContain('canary')
  })

  it('that is not there is tried again', async () => {
    const providers = { smtp: { url: `smtp://127.0.0.1:${await closedPort()}`, from: 'shop@example.com' } }
    const error = await failureOf(() => prepare('email', plain, { providers }).run(requestFor()))
    expect(error).toMatchObject({ code: 'OB007', transient: true })
  })

  it('that keeps talking without coming to an end is hung up on', async () => {
    const server = await tcpReceiver(() => {})
    const mailer = createMailer({ url: `smtp://127.0.0.1:${server.port}`, clock: systemClock, timeoutMs: 200 })
    const box = { name: '', address: 'ada@example.com' }
    const mail = { from: box, to: [box], subject: 'x', text: 'x', messageId: '<a@b>' }
    const error = await failureOf(() => mailer.send(mail, new AbortController().signal))
    expect(error).toMatchObject({ code: 'OB007', transient: true, message: expect.stringContaining('TIMED_OUT') })
    await eventually(() => server.connections > 0 && server.open === 0)
    mailer.close()
    expect(await failureOf(() => mailer.send(mail, new AbortController().signal))).toMatchObject({ transient: true })
  })

  it('is left alone when the caller’s signal fires while a mail waits for it', async () => {
    const server = await tcpReceiver(() => {})
    const providers = { smtp: { url: `smtp://127.0.0.1:${server.port}`, from: 'shop@example.com' } }
    const action = prepare('email', plain, { providers })
    const stopping = new AbortController()
    const running = Array.from({ length: 8 }, () => action.run(requestFor({ signal: stopping.signal })))
    await eventually(() => server.connections === 5)
    stopping.abort(new Error('stopping'))
    for (const run of running) await expect(run).rejects.toThrow('stopping')
  })
})

describe('what an event makes of a mail', () => {
  it.each([
    'ada@example.com, eve@evil.example',
    'ada@example.com\r\nRCPT TO:<eve@evil.example>',
    'ada@example.com\nBcc: eve@evil.example',
    '"a@evil.example"@example.com',
    'group: eve@evil.example, bob@evil.example;',
    'Ada <ada@example.com>, <eve@evil.example>',
    'ada@example.com> NOTIFY=SUCCESS',
    'ada@[127.0.0.1]',
    'ada@example.com (comment)',
    '=?utf-8?q?eve?= <ada@example.com> x',
    'no address',
    '',
    'a@b@c',
  ])('never sends to what is not exactly one address: %j', async (email) => {
    const { server, action } = await mailWith({ ...plain, to: '{{ email }}' })
    const error = await failureOf(() => action.run(requestFor({ payload: { email } })))
    expect(error).toMatchObject({ code: 'OB003', transient: false })
    if (email !== '') expect(error.message).not.toContain(email)
    expect(server.connections).toBe(0)
  })

  it.each(['a\r\nBcc: eve@evil.example', 'a\nb', 'a\u0000b', 'x'.repeat(1_000)])(
    'never puts %j into the subject',
    async (title) => {
      const { server, action } = await mailWith({ ...plain, subject: '{{ title }}' })
      expect(await failureOf(() => action.run(requestFor({ payload: { title } })))).toMatchObject({ code: 'OB003' })
      expect(server.connections).toBe(0)
    },
  )

  it('cannot add a recipient through a name', async () => {
    const { server, action } = await mailWith({ ...plain, to: '{{ name }} <ada@example.com>' })
    await failureOf(() => action.run(requestFor({ payload: { name: 'x <eve@evil.example>, y' } })))
    await failureOf(() => action.run(requestFor({ payload: { name: '"x" <eve@evil.example>' } })))
    await action.run(requestFor({ payload: { name: 'Ada Lovelace' } }))
    expect(server.mails.flatMap(({ to }) => to)).toEqual(['ada@example.com'])
  })
})

describe('an email action', () => {
  it.each([
    [{ ...plain, to: 'a@x.example, b@x.example' }, 'list'],
    [{ to: 'a@x.example', text: 'x' }, 'subject'],
    [{ to: 'a@x.example', subject: 'x' }, 'empty'],
    [{ to: 'a@x.example', template: 'shiped' }, 'Did you mean "shipped"?'],
    [{ to: 'a@x.example', template: 'toString' }, 'toString'],
    [{ ...plain, template: 'shipped' }, 'leave yours out'],
    [{ ...plain, data: { a: 1 } }, 'data'],
    [{ ...plain, html: '{{ broken' }, 'html'],
  ])('is refused when it is loaded: %j', async (config, message) => {
    const error = await failureOf(() => mailWith(config))
    expect(error.message).toContain(message)
  })

  it('is refused without its provider', async () => {
    expect((await failureOf(() => prepare('email', plain))).message).toContain('[providers.smtp]')
    const smtp = { url: 'https://canary@mail.example', from: 'shop@example.com' }
    const error = await failureOf(() => prepare('email', plain, { providers: { smtp } }))
    expect(error).toMatchObject({ code: 'OB012', path: ['providers', 'smtp', 'url'] })
    expect(error.message).not.toContain('canary')
    const nobody = { url: 'smtp://127.0.0.1:1', from: 'nobody' }
    expect((await failureOf(() => prepare('email', plain, { providers: { smtp: nobody } }))).message).toContain('from')
  })
})

it.each([
  ['ada@example.com', { name: '', address: 'ada@example.com' }],
  [' Ada Lovelace <ada+x@mail.example.com> ', { name: 'Ada Lovelace', address: 'ada+x@mail.example.com' }],
  ['"Lovelace, Ada" <ada@example.com>', { name: 'Lovelace, Ada', address: 'ada@example.com' }],
  ['ops@localhost', { name: '', address: 'ops@localhost' }],
  ['grüße@example.com', undefined],
  ['ada@grüße.example', { name: '', address: 'ada@xn--gre-6ka8l.example' }],
])('reads %j as %j', (text, mailbox) => expect(parseMailbox(text)).toEqual(mailbox))
