import { describe, expect, it } from 'vitest'
import { HELP, parseBenchArguments, UsageError } from '../../bench/arguments.mjs'

const known = {
  cases: ['append', 'read'],
  journeys: ['webhooks-backlog', 'webhooks-burst', 'workflow', 'workflows-of-others'],
}
const parse = (...argv: string[]) => parseBenchArguments(argv, known)

describe('the command line of the bench', () => {
  it('plays every case and no journey on the embedded server when nothing is asked for', () => {
    expect(parse()).toMatchObject({ cases: ['append', 'read'], journeys: [], server: { kind: 'embedded' }, ms: 2_000 })
  })

  it('plays the journeys alone, or beside the cases that are named', () => {
    expect(parse('journeys')).toMatchObject({ cases: [], journeys: known.journeys })
    expect(parse('journeys', 'append')).toMatchObject({ cases: ['append'], journeys: known.journeys })
  })

  it('selects journeys by name or by the word before the first dash, in their own order', () => {
    expect(parse('journeys', '--only', 'workflow,webhooks')).toMatchObject({
      journeys: ['webhooks-backlog', 'webhooks-burst', 'workflow'],
    })
    expect(parse('journeys', '--only', 'webhooks-burst')).toMatchObject({ journeys: ['webhooks-burst'] })
  })

  it('selects journeys that are named after the word journeys, beside cases', () => {
    expect(parse('journeys', 'webhooks-backlog')).toMatchObject({ cases: [], journeys: ['webhooks-backlog'] })
    expect(parse('journeys', 'workflow', 'append', '--only', 'webhooks')).toMatchObject({
      cases: ['append'],
      journeys: ['webhooks-backlog', 'webhooks-burst', 'workflow'],
    })
    expect(() => parse('webhooks-backlog')).toThrow('There is no bench called webhooks-backlog.')
  })

  it('takes a kind of server or an address', () => {
    expect(parse('--server', 'system')).toMatchObject({ server: { kind: 'system' } })
    expect(parse('--server', 'postgres://me@db/shop')).toMatchObject({
      server: { kind: 'given', url: 'postgres://me@db/shop' },
    })
    expect(() => parse('--server', 'debian')).toThrow(/"embedded", "system" or an address/)
  })

  it('names what it does not have, and what there is', () => {
    expect(() => parse('apend')).toThrow('There is no bench called apend. There are: append, read.')
    expect(() => parse('journeys', '--only', 'webhook')).toThrow(
      /There is no journey called webhook\. There are: webhooks-/,
    )
    expect(() => parse('--sever', 'system')).toThrow(UsageError)
  })

  it('answers a request for help before it looks at anything else', () => {
    expect(parse('--help', 'apend')).toEqual({ help: true })
    for (const option of ['--server', '--only', '--quick', '--rounds', '--seconds', '--record']) {
      expect(HELP).toContain(`  ${option} `)
    }
  })

  it('refuses numbers that mean nothing and options of journeys without journeys', () => {
    expect(() => parse('--seconds', '0')).toThrow(/--seconds must be a number above 0/)
    expect(() => parse('--rounds', '1.5')).toThrow(/--rounds must be a whole number from 1 up/)
    expect(() => parse('append', '--quick')).toThrow(/belong to the journeys/)
  })
})
