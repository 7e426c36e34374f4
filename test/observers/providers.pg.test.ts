import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openLog } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { closedPort, httpReceiver, type Reply } from '../support/receivers.ts'

const VAPID = `[providers.push]
subject = "mailto:ops@example.com"
public_key = "BMrOwJRFI5WMOEk7CN5eljdyXrwSa2DF3qY9YbdoXHbR8q6Sz-j7BWvzZRz-4eF6VfyFhHnyqJTyjl2rmvrbSKM"
private_key = "x"`

function write(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ac-providers-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'aftercommit.toml'), text)
  return join(folder, 'aftercommit.toml')
}

const smsAt = (url: string) =>
  `[providers.sms]\naccount = "AC1"\ntoken = "canary-token"\nfrom = "+12025550123"\nbase_url = "${url}"\n`

describe('text messages of an instance', () => {
  it('are sent for events, and the run record has their id and neither number nor text', async () => {
    const receiver = await httpReceiver((response) =>
      response.writeHead(201).end(JSON.stringify({ sid: 'SM0123456789', status: 'queued', to: '+4915198765432' })),
    )
    const { ac, sql } = await openLog()
    await ac.observers.loadFile(
      write(`${smsAt(receiver.url)}
        [observers.shipped]
        on = "order.shipped"
        actions = [{ type = "sms", to = "{{ phone }}", message = "On its way, {{ name }}" }]`),
    )
    await ac.start()
    await ac.transaction((tx) =>
      tx.emit('order.shipped', { payload: { phone: '+4915198765432', name: 'Ada' }, id: 'evt-1' }),
    )
    // A call that takes long leaves a record of its own, before it is over.
    const done = `select actions::text as text from aftercommit.runs where event_id = 'evt-1' and status = 'success'`
    const { text } = await eventually(async () => (await sql.query(done)).rows[0])
    expect(text).toContain('queued as SM0123456789')
    expect(text).not.toMatch(/4915198765432|Ada|canary/)
    expect(receiver.calls).toHaveLength(1)
  })
})

describe('the doctor', () => {
  const findingsOf = async (reply: Reply) => {
    const receiver = await httpReceiver(reply)
    const { ac } = await openLog()
    await ac.observers.loadFile(write(smsAt(receiver.url)))
    const findings = (await ac.doctor()).filter(({ check }) => check === 'sms')
    expect(JSON.stringify(findings)).not.toContain('canary')
    return { findings, calls: receiver.calls.map(({ method, path }) => `${method} ${path}`) }
  }

  it('asks for the account of [providers.sms] and sends no message', async () => {
    const { findings, calls } = await findingsOf((response) => response.end('{}'))
    expect(findings).toMatchObject([{ level: 'ok', message: expect.stringContaining('knows the account') }])
    expect(calls).toEqual(['GET /2010-04-01/Accounts/AC1.json'])
  })

  it('calls a wrong token a problem, and an API that fails a warning', async () => {
    expect((await findingsOf((response) => response.writeHead(401).end())).findings).toMatchObject([
      { level: 'problem', message: expect.stringContaining('401') },
    ])
    expect((await findingsOf((response) => response.writeHead(502).end())).findings).toMatchObject([
      { level: 'warning' },
    ])
    expect((await findingsOf((response) => response.destroy())).findings).toMatchObject([{ level: 'warning' }])
  })

  it('knocks at the push services that browsers have named, as far as they may be called', async () => {
    const receiver = await httpReceiver((response) => response.writeHead(404).end())
    const { ac, sql } = await openLog()
    const pair = await vapid()
    await ac.observers.loadFile(write(`${pair}\n[network]\nallow = ["127.0.0.1"]`))
    expect((await ac.doctor()).filter(({ check }) => check === 'push')).toMatchObject([{ level: 'ok' }])
    const dead = `http://127.0.0.1:${await closedPort()}`
    for (const [at, endpoint] of [
      `${receiver.url}/a`,
      `${receiver.url}/b`,
      `${dead}/c`,
      'http://10.0.0.7/d',
    ].entries()) {
      await sql.query(
        `insert into aftercommit.push_subscriptions (endpoint_hash, user_id, endpoint, p256dh, auth)
         values ($1, 'ada', $2, 'canary', 'canary')`,
        [String(at), endpoint],
      )
    }
    const findings = (await ac.doctor()).filter(({ check }) => check === 'push')
    expect(findings.map(({ level }) => level).sort()).toEqual(['ok', 'warning', 'warning'])
    expect(findings.map(({ message }) => message).join('\n')).toMatch(/2 devices[\s\S]*(private network|ECONNREFUSED)/)
    expect(JSON.stringify(findings)).not.toContain('canary')
    expect(receiver.calls.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /'])
  })
})

describe('providers that cannot be right', () => {
  it('are all reported with their place when the file is loaded', async () => {
    const { ac } = await openLog()
    const file = write(`${VAPID}\n${smsAt('https://u:p@api.example.com').replace('+1202', 'not a number 1202')}`)
    await expect(ac.observers.loadFile(file)).rejects.toThrow(
      /providers\.push\.private_key[\s\S]*providers\.sms\.from[\s\S]*providers\.sms\.base_url/,
    )
  })
})

describe('registering with an instance', () => {
  it('goes by the network rules of the file in force', async () => {
    const { ac } = await openLog()
    const { endpoint, keys } = { endpoint: 'https://10.20.0.7/push/1', keys: await browserKeys() }
    await expect(ac.push.register('ada', { endpoint, keys })).rejects.toMatchObject({ code: 'BAD_PUSH_SUBSCRIPTION' })
    await ac.observers.loadFile(write(`[network]\nallow = ["10.20.0.0/16"]`))
    expect(await ac.push.register('ada', { endpoint, keys })).toBe(true)
    await ac.push.register('ada', { endpoint: 'https://fcm.googleapis.com/fcm/send/abc', keys })
    expect(await ac.push.list('ada')).toHaveLength(2)
  })

  it('leaves nothing behind of messages that nobody tries again', async () => {
    const { ac, sql } = await openLog()
    await sql.query(`insert into aftercommit.push_progress (message, endpoint_hash, at)
                     values ('old', 'x', now() - interval '31 days'), ('new', 'x', now())`)
    await ac.upkeep()
    const { rows } = await sql.query('select message from aftercommit.push_progress')
    expect(rows).toEqual([{ message: 'new' }])
  })
})

async function vapid(): Promise<string> {
  const { default: webPush } = await import('web-push')
  const { publicKey, privateKey } = webPush.generateVAPIDKeys()
  return `[providers.push]\nsubject = "mailto:a@b.example"\npublic_key = "${publicKey}"\nprivate_key = "${privateKey}"`
}

async function browserKeys() {
  const { default: webPush } = await import('web-push')
  return { p256dh: webPush.generateVAPIDKeys().publicKey, auth: Buffer.alloc(16, 7).toString('base64url') }
}
