import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type Aftercommit,
  accept,
  defineWorkflow,
  GiveUp,
  after as later,
  memorySink,
  reject,
  toReceiptJson,
} from '../../src/index.ts'
import { emptyFolder, runCli } from '../cli/support.ts'
import { openSubscriptions, QUICK } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'

type Receipt = Awaited<ReturnType<Aftercommit['receipt']>>

/** The library and the command line answer the same, but for the time at which they looked. */
async function same(ac: Aftercommit, url: string, id: string): Promise<Receipt> {
  const receipt = await ac.receipt(id)
  const { code, stdout, stderr } = await runCli(['receipt', id, '--json', '--database', url])
  expect([code, stderr]).toEqual([0, ''])
  const { as_of: _, ...printed } = JSON.parse(stdout)
  const { as_of: __, ...own } = JSON.parse(JSON.stringify(toReceiptJson(receipt)))
  expect(printed).toEqual(own)
  return receipt
}

function actionOf({ observers }: Receipt, name: string) {
  const [action] = observers.find(({ observer }) => observer === name)?.actions ?? []
  if (action === undefined) throw new Error(`${name} has no action in the receipt`)
  return action
}

async function until(ac: Aftercommit, id: string, isSo: (receipt: Receipt) => boolean): Promise<void> {
  await eventually(async () => isSo(await ac.receipt(id)))
}

describe('a receipt, the same in the library and on the command line', () => {
  it('says that nothing follows an event that nothing takes', async () => {
    const { ac, url, emit } = await openSubscriptions()
    ac.subscribe({ id: 'doors', on: ['door.*'], handle: () => {} })
    await ac.start()
    await emit('a')
    const receipt = await same(ac, url, 'a')
    expect(receipt).toMatchObject({
      isSettled: true,
      open: [],
      subscriptions: [],
      otherSubscriptions: 1,
      observers: [],
    })
    expect(receipt.sentence).toContain('Nothing follows it')
  })

  it('shows what was done at once, with the values that decided', async () => {
    const { ac, url, emit } = await openSubscriptions()
    ac.observers.action('note', () => {})
    const actions = [{ type: 'custom', name: 'note', handler: 'note' }]
    await ac.observers.add({ name: 'bright', on: 'lamp.lit', condition: 'watts > 60', actions })
    await ac.observers.add({ name: 'dim', on: 'lamp.lit', condition: 'watts < 60', actions })
    ac.subscribe({ id: 'mail', on: ['lamp.*'], handle: () => {} })
    ac.project({ id: 'sums', on: ['lamp.*'], apply: (sum: number | null) => (sum ?? 0) + 1 })
    await ac.start()
    await emit('a', { payload: { watts: 100 } })
    await until(ac, 'a', ({ isSettled, counts }) => isSettled && counts.total === 3)
    const receipt = await same(ac, url, 'a')
    expect(receipt.subscriptions.map(({ id, state, derived }) => [id, state, derived])).toEqual([
      ['mail', 'done', true],
      ['sums', 'done', true],
    ])
    expect(actionOf(receipt, 'bright')).toMatchObject({ state: 'done', attempts: 1, derived: false })
    expect(receipt.observers.find(({ observer }) => observer === 'dim')).toMatchObject({
      verdict: 'condition_false',
      actions: [],
      parts: expect.arrayContaining([expect.objectContaining({ source: 'watts', value: 100 })]),
    })
    expect(receipt.sentence).toBe('Settled. All 3 things that followed are done.')
  })

  it('shows every attempt of what needed several', async () => {
    const { ac, url, emit } = await openSubscriptions()
    let calls = 0
    ac.observers.action('note', () => {
      if (++calls < 3) throw new Error('no paper')
    })
    await ac.observers.add({
      name: 'slow',
      on: 'lamp.lit',
      retry: QUICK,
      actions: [{ type: 'custom', name: 'note', handler: 'note' }],
    })
    await ac.start()
    await emit('a')
    await until(ac, 'a', ({ isSettled, counts }) => isSettled && counts.done === 1)
    const { state, history } = actionOf(await same(ac, url, 'a'), 'slow')
    expect(state).toBe('done')
    expect(history.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'retry'],
      [2, 'retry'],
      [3, 'success'],
    ])
  })

  it('names the dead letter, what is parked behind it and the command that redrives it', async () => {
    const { ac, url, emit } = await openSubscriptions()
    let isBroken = true
    ac.subscribe({
      id: 'warehouse',
      on: ['lamp.*'],
      retry: { maxAttempts: 1 },
      handle: () => {
        if (isBroken) throw new GiveUp('unknown sku')
      },
    })
    await ac.start()
    await emit('a', { key: '1' })
    await emit('b', { key: '1' })
    await until(ac, 'b', ({ subscriptions }) => subscriptions[0]?.state === 'parked')
    const dead = await same(ac, url, 'a')
    const [letter] = await ac.deadLetters.list()
    expect(dead.subscriptions[0]).toMatchObject({
      state: 'dead',
      deadLetter: letter!.id,
      error: { message: 'unknown sku' },
    })
    expect(dead.open).toEqual([
      expect.objectContaining({
        what: 'warehouse is a dead letter',
        command: `npx aftercommit dlq redrive ${letter!.id}`,
      }),
    ])
    expect(dead.isSettled).toBe(false)
    expect((await same(ac, url, 'b')).subscriptions[0]).toMatchObject({ state: 'parked' })

    isBroken = false
    await ac.deadLetters.redrive(letter!.id)
    const handle = await ac.receipt('b')
    expect(await handle.settled({ timeout: '60s' })).toMatchObject({ settled: true, events: 1 })
    expect((await same(ac, url, 'a')).subscriptions[0]).toMatchObject({ state: 'done', deadLetter: letter!.id })
  })

  it('says that a paused subscription has not come to it, and how to resume it', async () => {
    const { ac, url, emit } = await openSubscriptions()
    const mail = ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await mail.pause({ who: 'ada' })
    await emit('a')
    const receipt = await same(ac, url, 'a')
    expect(receipt.subscriptions[0]).toMatchObject({ state: 'not_yet', waitsFor: 'mail is paused' })
    expect(receipt.open[0]).toMatchObject({ command: 'npx aftercommit subscriptions resume mail' })
    const { settled, open } = await receipt.settled({ timeout: '50ms' })
    expect([settled, open.map(({ event }) => event.id)]).toEqual([false, ['a']])
  })

  it('tells what an operator skipped from what was handled', async () => {
    const { ac, url, emit } = await openSubscriptions()
    const mail = ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await emit('a')
    await until(ac, 'a', ({ isSettled }) => isSettled)
    await mail.pause({ who: 'ada' })
    await emit('b')
    await mail.fastForward({ who: 'ada' })
    expect((await same(ac, url, 'a')).subscriptions[0]).toMatchObject({ state: 'done' })
    expect((await same(ac, url, 'b')).subscriptions[0]).toMatchObject({ state: 'skipped', derived: true })
  })

  it('judges an event by the filter that was registered when it was read', async () => {
    const { ac, url, emit, another } = await openSubscriptions()
    ac.subscribe({ id: 'mail', on: ['lamp.*'], handle: () => {} })
    await ac.start()
    await emit('a')
    await until(ac, 'a', ({ isSettled, counts }) => isSettled && counts.total === 1)
    await ac.stop()
    const next = another()
    next.subscribe({ id: 'mail', on: ['door.*'], handle: () => {} })
    next.subscribe({ id: 'later', from: 'head', handle: () => {} })
    await next.start()
    await emit2(next, 'b')
    await until(next, 'b', ({ isSettled, counts }) => isSettled && counts.total === 1)
    expect((await same(next, url, 'a')).subscriptions.map(({ id, state }) => [id, state])).toEqual([['mail', 'done']])
    expect((await same(next, url, 'b')).subscriptions.map(({ id, state }) => [id, state])).toEqual([['later', 'done']])
  })

  it('names the circuit that holds a webhook back, and the resume that probes it', async () => {
    const receiver = await httpReceiver((response) => void response.writeHead(503).end())
    const { ac, url, emit } = await openSubscriptions()
    const file = join(emptyFolder(), 'aftercommit.toml')
    writeFileSync(
      file,
      `[network]\nallow = ["127.0.0.1"]\n[observers.erp]\non = "lamp.lit"\nretry = { max_attempts = 50, initial_delay = "1ms", max_delay = "1ms" }\n[[observers.erp.actions]]\ntype = "webhook"\nurl = "${receiver.url}/orders"\n`,
    )
    await ac.observers.loadFile(file)
    await ac.start()
    await emit('a')
    await until(ac, 'a', (receipt) => receipt.open.some(({ why }) => why.includes('circuit')))
    const receipt = await same(ac, url, 'a')
    const action = actionOf(receipt, 'erp')
    expect(['retrying', 'running']).toContain(action.state)
    expect(receipt.open[0]!.command).toBe(`npx aftercommit deliveries resume --destination '${action.destination}'`)
    expect(action.history[0]).toMatchObject({ code: expect.any(String), response: { status: 503 } })
  })

  it('follows a workflow: its event, its effects and its timer', async () => {
    const { ac, url } = await openSubscriptions()
    ac.workflows.register(ORDER, {
      effects: {
        pay: () => {
          throw new GiveUp('no_money')
        },
      },
    })
    await ac.start()
    await ac.transaction((tx) =>
      tx.emit('order.placed', { id: 'a', aggregate: { type: 'order', id: '1' }, payload: {} }),
    )
    await until(ac, 'a', ({ work }) => work.some(({ state }) => state === 'dead') && work.length === 2)
    const receipt = await same(ac, url, 'a')
    expect(receipt.caused).toEqual([expect.objectContaining({ type: 'fulfilment.placed', depth: 1 })])
    expect(receipt.work.map(({ kind, state, workflow }) => [kind, state, workflow]).sort()).toEqual([
      ['effect', 'dead', { type: 'fulfilment', id: '1' }],
      ['timer', 'scheduled', { type: 'fulfilment', id: '1' }],
    ])
    expect(receipt.sentence).toMatch(
      /^Not settled\. Of 3 things that followed, 1 is done, 1 is set for later and 1 is dead\.$/,
    )
  })

  it('tells a relay from its checkpoint', async () => {
    const { ac, url, emit } = await openSubscriptions()
    ac.relay({ id: 'bus', to: memorySink() })
    await ac.start()
    await emit('a')
    await until(ac, 'a', ({ isSettled, counts }) => isSettled && counts.total === 1)
    expect((await same(ac, url, 'a')).subscriptions).toEqual([
      expect.objectContaining({ id: 'bus', kind: 'relay', state: 'done', derived: true }),
    ])
  })

  it('is refused for an event that does not exist', async () => {
    const { ac, url } = await openSubscriptions()
    await expect(ac.receipt('nothing')).rejects.toMatchObject({ code: 'EVENT_NOT_FOUND' })
    const { code, stderr } = await runCli(['receipt', 'nothing', '--database', url])
    expect([code, stderr]).toEqual([1, expect.stringContaining('EVENT_NOT_FOUND')])
  })
})

describe('settled', () => {
  it('follows what an event caused, and names what is open there', async () => {
    const { ac } = await openSubscriptions()
    let isBroken = true
    ac.subscribe({
      id: 'chain',
      on: ['first'],
      handle: (event) => ac.transaction((tx) => tx.emit('second', { id: `${event.id}2`, payload: {} })).then(() => {}),
    })
    ac.subscribe({
      id: 'end',
      on: ['second'],
      retry: { maxAttempts: 1 },
      handle: () => {
        if (isBroken) throw new GiveUp('broken')
      },
    })
    await ac.start()
    await ac.transaction((tx) => tx.emit('first', { id: 'a', payload: {} }))
    await until(ac, 'a', ({ caused }) => caused.length === 1)
    await until(ac, 'a2', ({ counts }) => counts.dead === 1)
    const receipt = await ac.receipt('a')
    expect(receipt.isSettled).toBe(true)
    const { settled, open, events } = await receipt.settled({ timeout: '10ms' })
    expect([settled, events, open.map(({ event }) => event.id)]).toEqual([false, 2, ['a', 'a2']])
    isBroken = false
    await ac.deadLetters.redrive({ owner: 'end' })
    expect(await receipt.settled({ timeout: '60s' })).toMatchObject({ settled: true, open: [], events: 2 })
  })
})

interface Order {
  readonly type: 'place' | 'remind'
  readonly id: string
}

const ORDER = defineWorkflow<{ readonly placed: boolean }, Order, { type: 'placed' }, { type: 'pay' }, string>({
  type: 'fulfilment',
  id: ({ id }) => id,
  initial: () => ({ placed: false }),
  evolve: () => ({ placed: true }),
  decide: (state, { type, id }) =>
    type === 'place' && !state.placed
      ? accept([{ type: 'placed' }], { effects: [{ type: 'pay' }], timers: [later('1h', { type: 'remind', id })] })
      : reject('placed already'),
  isTerminal: () => false,
  on: { 'order.placed': (event) => ({ type: 'place', id: event.aggregateId! }) },
})

function emit2(ac: Aftercommit, id: string) {
  return ac.transaction((tx) => tx.emit('lamp.lit', { id, payload: {} }))
}
