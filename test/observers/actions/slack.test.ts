import { describe, expect, it } from 'vitest'
import { httpReceiver } from '../../support/receivers.ts'
import { failureOf, prepare, requestFor } from './support.ts'

const path = '/services/T0CANARY/B0CANARY/canaryCanary1234567890'

async function slackWith(config: Record<string, unknown>, reply?: Parameters<typeof httpReceiver>[0]) {
  const receiver = await httpReceiver(reply)
  // The operator's own address may be private: nothing is allowed here.
  const providers = { slack: { webhookUrl: { reveal: () => receiver.url + path } } }
  return { receiver, action: prepare('slack', config, { providers, allow: [] }) }
}

describe('a Slack message', () => {
  it('goes to the provider with its text rendered and escaped', async () => {
    const { receiver, action } = await slackWith({ channel: '#{{ room }}', message: '*New* <{{ name }}> & co' })
    const result = await action.run(requestFor({ payload: { room: 'ops', name: '<!channel> & <@U1>' } }))
    expect(result).toMatchObject({ actionType: 'slack', success: true })
    expect(receiver.calls[0]?.path).toBe(path)
    expect(JSON.parse(receiver.calls[0]?.body ?? '')).toEqual({
      channel: '#ops',
      text: '*New* <&lt;!channel&gt; &amp; &lt;@U1&gt;> & co',
    })
  })

  it('renders templates inside blocks, each escaped for its place', async () => {
    const blocks = [
      { type: 'section', text: { type: 'mrkdwn', text: 'Hi {{ name }}' } },
      { type: 'actions', elements: [{ type: 'button', url: 'https://shop.example/{{ name }}', value: '{{ name }}' }] },
      { type: 'divider', count: 3, flag: true },
    ]
    const { receiver, action } = await slackWith({ blocks })
    await action.run(requestFor({ payload: { name: '<a/b>' }, aggregate: { type: 'order', id: '42' } }))
    expect(JSON.parse(receiver.calls[0]?.body ?? '')).toEqual({
      text: '*order.placed* - order `42`',
      blocks: [
        { type: 'section', text: { type: 'mrkdwn', text: 'Hi &lt;a/b&gt;' } },
        { type: 'actions', elements: [{ type: 'button', url: 'https://shop.example/%3Ca%2Fb%3E', value: '<a/b>' }] },
        { type: 'divider', count: 3, flag: true },
      ],
    })
  })

  it('has a text of its own where none is written', async () => {
    const { receiver, action } = await slackWith({})
    await action.run(requestFor({ aggregate: { type: 'a&b', id: '`<1>`' } }))
    await action.run(requestFor())
    const texts = receiver.calls.map(({ body }) => JSON.parse(body).text)
    expect(texts).toEqual(["*order.placed* - a&amp;b `'&lt;1&gt;'`", '*order.placed* - event `evt-1`'])
  })

  it.each([
    [400, false],
    [404, false],
    [410, false],
    [429, true],
    [500, true],
  ])('that is answered with %i is OB008, worth another attempt: %s', async (status, transient) => {
    const { action } = await slackWith({ message: 'x' }, (response) => {
      response.writeHead(status, { 'retry-after': '3' }).end('no_text')
    })
    const error = await failureOf(() => action.run(requestFor()))
    expect(error).toMatchObject({ code: 'OB008', transient, status })
    expect(error.retryAfterMs).toBe(transient ? 3_000 : undefined)
  })

  it('can be previewed', async () => {
    const { receiver, action } = await slackWith({ channel: '#ops', message: 'x {{ a }}' })
    expect(action.preview(requestFor({ payload: { a: 1 } })).content).toEqual({ channel: '#ops', text: 'x 1' })
    expect(receiver.connections).toBe(0)
    expect(action.destination).toBe(`slack ${receiver.url}`)
  })
})

describe('a slack action', () => {
  it('is refused when it is loaded without its provider, or with one that is no address', async () => {
    expect(await failureOf(() => prepare('slack', {}))).toMatchObject({
      code: 'OB012',
      message: expect.stringContaining('[providers.slack]'),
    })
    for (const webhookUrl of ['canary', 'ftp://x/canary', 'https://canary:canary@x/']) {
      const error = await failureOf(() => prepare('slack', {}, { providers: { slack: { webhookUrl } } }))
      expect(error.message).toContain('webhook_url')
      expect(error.message).not.toContain('canary')
    }
  })

  it.each([
    ['url', '{{ link }}'],
    ['url', 'https://{{ host }}/orders'],
    ['image_url', ' {{ link }}'],
    ['thumb_url', 'https://shop.example{{ rest }}'],
    ['url', 'mailto:{{ to }}'],
    ['url', '{% if paid %}https://shop.example/{% endif %}'],
  ])('is refused where the payload chooses where the %s %j leads', async (key, url) => {
    const blocks = [{ type: 'actions', elements: [{ type: 'button', [key]: url }] }]
    const error = await failureOf(() => slackWith({ blocks }))
    expect(error).toMatchObject({ code: 'OB003', message: expect.stringContaining('before its path') })
  })

  it('may lead to a fixed address of any scheme', async () => {
    const { action } = await slackWith({ blocks: [{ type: 'actions', elements: [{ url: 'mailto:a@b.example' }] }] })
    expect(action.preview(requestFor()).content).toMatchObject({
      blocks: [{ elements: [{ url: 'mailto:a@b.example' }] }],
    })
  })

  it('is refused with templates that cannot be compiled, all at once', async () => {
    const error = await failureOf(() => slackWith({ channel: '{{ }}', message: '{% if %}', blocks: [{ a: '{{ x' }] }))
    expect((error as unknown as { mistakes: unknown[] }).mistakes).toHaveLength(3)
  })
})
