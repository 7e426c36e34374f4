import { describe, expect, it } from 'vitest'
import {
  accept,
  defineWorkflow,
  exploreWorkflow,
  reject,
  retraceWorkflow,
  type StateMachine,
  toDot,
  toMermaid,
} from '../../src/workflows/index.ts'
import { type OrderInput, order } from '../testing/support/order-workflow.ts'

const id = '7'
const place: OrderInput = { type: 'place', id, total: 90 }
const ship: OrderInput = { type: 'ship', id }

describe('exploring', () => {
  it('finds what inputs, answers and timers lead to, and nothing that cannot happen', () => {
    const machine = exploreWorkflow(order, {
      inputs: [place, ship],
      answers: (effect) => (effect.type === 'charge' ? [{ type: 'pay', id }] : []),
    })
    expect(machine.states.map(({ name, isInitial, isTerminal }) => [name, isInitial, isTerminal])).toEqual([
      ['new', true, false],
      ['unpaid', false, false],
      ['paid', false, false],
      ['closed', false, true],
    ])
    expect(machine.states[1]!.fields).toEqual(['status', 'total', 'reminders'])
    expect(machine.transitions).toEqual([
      { from: 'new', to: 'unpaid', cause: 'place', events: ['placed'], effects: ['charge'] },
      { from: 'unpaid', to: 'paid', cause: 'pay (charge)', events: ['paid'], effects: [] },
      { from: 'unpaid', to: 'unpaid', cause: 'remind (timer)', events: ['reminded'], effects: ['mail'] },
      { from: 'paid', to: 'closed', cause: 'ship', events: ['shipped'], effects: [] },
      { from: 'unpaid', to: 'closed', cause: 'expire (timer)', events: ['expired'], effects: [] },
    ])
    expect(machine.source).toBe('explored with 2 example inputs; what they do not reach is not drawn')
  })

  it('gives up where states have no end, and says so', () => {
    const counter = defineWorkflow<{ status: string; n: number }, { id: string }, { type: 'counted' }>({
      type: 'counter',
      id: (input) => input.id,
      initial: () => ({ status: 'counting', n: 0 }),
      evolve: (state) => ({ ...state, n: state.n + 1 }),
      decide: () => accept([{ type: 'counted' }]),
    })
    const machine = exploreWorkflow(counter, { inputs: [{ id }], maxStates: 10 })
    expect(machine.transitions).toHaveLength(1)
    expect(machine.source).toMatch(/given up after 10 states$/)
  })

  it('asks for names where states have none', () => {
    const nameless = defineWorkflow<number, string, string, never, string>({
      type: 'nameless',
      id: () => id,
      initial: () => 0,
      evolve: (n) => n + 1,
      decide: (n) => (n < 2 ? accept(['more']) : reject('enough')),
    })
    expect(() => exploreWorkflow(nameless, { inputs: ['go'] })).toThrow(/"nameless".*nameOf/)
    const machine = exploreWorkflow(nameless, { inputs: ['go'], nameOf: (n) => `after ${n}` })
    expect(machine.transitions.map(({ from, cause, to }) => [from, cause, to])).toEqual([
      ['after 0', 'go', 'after 1'],
      ['after 1', 'go', 'after 2'],
    ])
  })
})

describe('retracing', () => {
  it('shows the transitions that happened, each once', () => {
    const machine = retraceWorkflow(order, [
      [{ type: 'placed', total: 1 }, { type: 'reminded' }, { type: 'reminded' }, { type: 'paid' }],
      [{ type: 'placed', total: 2 }, { type: 'expired' }],
    ])
    expect(machine.transitions.map(({ from, events, to }) => `${from} ${events} ${to}`)).toEqual([
      'new placed unpaid',
      'unpaid reminded unpaid',
      'unpaid paid paid',
      'unpaid expired closed',
    ])
    expect(machine.source).toBe('retraced from 2 stored histories; what never happened is not drawn')
  })
})

describe('drawing', () => {
  const machine: StateMachine = {
    workflow: 'demo',
    source: 'made up',
    states: [
      { name: 'new', isInitial: true, isTerminal: false, fields: [] },
      { name: 'say "hi"; end\nstate', isInitial: false, isTerminal: true, fields: [] },
    ],
    transitions: [
      { from: 'new', to: 'say "hi"; end\nstate', cause: 'go: now', events: ['went'], effects: ['mail'] },
      { from: 'new', to: 'new', cause: null, events: ['a', 'b'], effects: [] },
    ],
  }

  it('is Mermaid in which no name is taken for syntax', () => {
    expect(toMermaid(machine)).toBe(
      [
        'stateDiagram-v2',
        '  %% demo: made up',
        '  state "new" as s1',
        '  state "say #34;hi#34;#59; end state" as s2',
        '  [*] --> s1',
        '  s1 --> s2 : go#58; now / went → mail',
        '  s1 --> s1 : a, b',
        '  s2 --> [*]',
        '',
      ].join('\n'),
    )
  })

  it('is DOT in which no name is taken for syntax', () => {
    expect(toDot(machine)).toBe(
      [
        '// demo: made up',
        'digraph "demo" {',
        '  rankdir=LR',
        '  node [shape=box, style=rounded]',
        '  begin [shape=point, label=""]',
        '  s1 [label="new"]',
        '  s2 [label="say \\"hi\\"; end state", peripheries=2]',
        '  begin -> s1',
        '  s1 -> s2 [label="go: now / went → mail"]',
        '  s1 -> s1 [label="a, b"]',
        '}',
        '',
      ].join('\n'),
    )
  })
})
