import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import {
  createObserverExecutor,
  fakeConditions,
  fakeEventSource,
  fakeTemplates,
  recordingActions,
  testEvent,
} from '../../src/testing/index.ts'

const placed = (payload: unknown = { total: 90 }) => testEvent('order.placed', { payload })
const log = (message = '{{ total }}') => ({ on: 'order.placed', actions: [{ type: 'log', message }] })

describe('recordingActions', () => {
  it('shows what would have been sent, rendered, with secrets masked', async () => {
    const actions = recordingActions()
    const config = `
      [observers.crm]
      on = "order.placed"
      [[observers.crm.actions]]
      type = "webhook"
      name = "tell"
      url = "https://crm.example.com/orders/{{ id }}"
      headers = { authorization = "\${env:TOKEN}" }
      body = { total = "{{ total }}" }
    `
    const executor = createObserverExecutor({ config, actions, env: { TOKEN: 'Bearer s3cret' } })
    const event = placed({ id: 'a b', total: 90 })
    await executor.process(event)
    expect(actions.executions).toMatchObject([
      { observer: 'crm', action: 'tell', type: 'webhook', attempt: 1, event: { id: event.id } },
    ])
    const { content } = actions.executions[0]!.preview
    expect(content).toMatchObject({ url: 'https://crm.example.com/orders/a%20b', body: '{"total":90}' })
    expect(JSON.stringify(content)).not.toContain('s3cret')
  })

  it('fails when told to, and stops failing when told to', async () => {
    const actions = recordingActions()
    const config = { observers: { rule: { ...log(), retry: { maxAttempts: 1 } } } }
    const executor = createObserverExecutor({ config, actions })
    const message = async () => (await executor.process(placed())).rule?.[0]?.message
    expect(await message()).toBe('recorded')
    actions.setShouldFail(true, 'the shop is closed')
    expect(await message()).toBe('the shop is closed')
    actions.setShouldFail(false)
    expect(await message()).toBe('recorded')
    actions.failing(new Error('an error of the test'))
    expect(await message()).toBe('an error of the test')
    expect(actions.executions).toHaveLength(4)
  })
})

describe('fakes', () => {
  it('conditions hold unless told, and need not be conditions', async () => {
    const conditions = fakeConditions().withResult('when the moon is full', false)
    const config = {
      observers: {
        moon: { ...log(), condition: 'when the moon is full' },
        sun: { ...log(), condition: 'when the sun shines' },
      },
    }
    const results = await createObserverExecutor({ config, conditions }).process(placed())
    expect(Object.keys(results)).toEqual(['sun'])
  })

  it('templates render to what they are told, or to themselves', async () => {
    const actions = recordingActions()
    const templates = fakeTemplates().withResult('{{ total }}', 'ninety')
    const config = {
      observers: {
        told: log(),
        itself: log('{{ not | a filter }}'),
        tree: {
          on: '*',
          actions: [{ type: 'webhook', url: 'https://a.example.com/x', body: { a: ['{{ total }}', 1] } }],
        },
      },
    }
    await createObserverExecutor({ config, actions, templates }).process(placed())
    const [told, itself, tree] = actions.executions.map(({ preview }) => preview.content)
    expect([told?.message, itself?.message]).toEqual(['ninety', '{{ not | a filter }}'])
    expect(tree?.body).toBe('{"a":["ninety",1]}')
  })
})

describe('createObserverExecutor', () => {
  it('processes what comes from a source, one after the other', async () => {
    const actions = recordingActions()
    const executor = createObserverExecutor({ config: { observers: { rule: log() } }, actions })
    const source = fakeEventSource([placed({ total: 1 })])
    source.push(placed({ total: 2 }))
    source.end()
    for await (const event of source) await executor.process(event)
    expect(actions.executions.map(({ preview }) => preview.content.message)).toEqual(['1', '2'])
    expect(executor.summary).toEqual({
      events: 2,
      unmatched: 0,
      conditions: { held: 2, notMet: 0, failed: 0 },
      succeeded: 2,
      failed: 0,
      retries: 0,
    })
  })

  it('keeps the order of calls that do not wait for one another', async () => {
    const actions = recordingActions()
    const executor = createObserverExecutor({ config: { observers: { rule: log() } }, actions })
    await Promise.all([1, 2, 3].map((total) => executor.process(placed({ total }))))
    expect(actions.executions.map(({ preview }) => preview.content.message)).toEqual(['1', '2', '3'])
  })

  it('rejects with every mistake of the configuration, in TOML with its place', async () => {
    const executor = createObserverExecutor({
      config: `[observers.a]\non = "order.placed"\ncondtion = "x"\n[[observers.a.actions]]\ntype = "logg"\n`,
    })
    await expect(executor.ready()).rejects.toThrow(
      /observers\.toml:3[\s\S]*condition[\s\S]*observers\.toml:5[\s\S]*log/,
    )
    await expect(executor.process(placed())).rejects.toThrow(/condtion/)
  })

  it('checks types and fields against the events of the application', async () => {
    const events = defineEvents({ 'order.placed': z.object({ total: z.number() }) })
    const check = (observer: object) =>
      createObserverExecutor({ config: { observers: { rule: { ...log(), ...observer } } }, events }).ready()
    await expect(check({})).resolves.toBeUndefined()
    await expect(check({ on: 'order.plced' })).rejects.toThrow(/Did you mean "order.placed"/)
    await expect(check({ condition: 'totl > 3' })).rejects.toThrow(/Did you mean "total"/)
  })

  it('records a template that fails for an event as a failure of its action, and tries it no further', async () => {
    const executor = createObserverExecutor({ config: { observers: { rule: log('{{ total / parts }}') } } })
    const results = await executor.process(placed({ total: 1, parts: 0 }))
    expect(results.rule).toMatchObject([{ success: false, code: 'OB003', attempts: 1 }])
    expect(await executor.deadLetters.count()).toBe(1)
  })

  it('takes filters, action types and custom actions of the application', async () => {
    const actions = recordingActions()
    const shout = {
      type: 'shout',
      schema: z.strictObject({ text: z.string() }),
      defaultRetry: 'local',
      prepare: ({ text }: { text: string }) => ({
        destination: null,
        singleAttempt: false,
        run: () => expect.unreachable('a test executor sends nothing'),
        preview: () => ({ actionType: 'shout', destination: null, content: { text } }),
      }),
    } as const
    const config = {
      observers: {
        rule: {
          on: '*',
          actions: [
            { type: 'log', message: '{{ name | starred }}' },
            { type: 'shout', text: 'hey' },
            { type: 'custom', handler: 'anything', config: { total: '{{ total }}' } },
          ],
        },
      },
    }
    const filters = { starred: (value: unknown) => `*${value}*` }
    const executor = createObserverExecutor({ config, actions, filters, actionTypes: [shout] })
    await executor.process(placed({ name: 'Ada', total: 3 }))
    expect(actions.executions.map(({ preview }) => preview.content)).toMatchObject([
      { message: '*Ada*' },
      { text: 'hey' },
      { handler: 'anything', config: { total: 3 } },
    ])
  })
})
