import { expect, it } from 'vitest'
import { checkOnlyPorts, diffConfigurations, loadConfigurationFile } from '../../../src/observers/index.ts'

const ref = (name: string) => `\${env:${name}}`

async function load(text: string, env: Record<string, string> = {}) {
  const result = await loadConfigurationFile({ text, name: 'a.toml' }, checkOnlyPorts(env))
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes))
  return result
}

const action = (observer: string, keys: string) => `[[observers.${observer}.actions]]\n${keys}`

it('is empty for the same rules in other words', async () => {
  const one = await load(
    `[runtime]\nmax_concurrency = 5\n[observers.a]\non = "a.b"\n${action('a', 'type = "log"\nmessage = "x"')}`,
  )
  const other = await load(
    `[observers.a]\nactions = [{ message = "x", type = "log" }]\non = "a.b"\n[runtime]\nmax_concurrency = 5`,
  )
  expect(diffConfigurations(one, other)).toEqual({ isEmpty: true, added: [], removed: [], changed: [], settings: [] })
})

it('tells observers, actions and settings that came, went or changed', async () => {
  const before = await load(
    [
      '[runtime]\nmax_concurrency = 5\nrecord = "all"',
      '[observers.gone]\non = "a.b"',
      action('gone', 'type = "log"\nmessage = "x"'),
      '[observers.kept]\non = ["a.b", "a.c"]\nenabled = true',
      action('kept', 'type = "log"\nmessage = "x"'),
      action('kept', 'type = "webhook"\nurl = "https://one.example.com"'),
      action('kept', 'type = "log"\nname = "other"\nmessage = "y"'),
    ].join('\n'),
  )
  const after = await load(
    [
      '[runtime]\nmax_concurrency = 6',
      '[observers.kept]\non = ["a.b"]\nenabled = true',
      action('kept', 'type = "log"\nname = "other"\nmessage = "y"'),
      action('kept', 'type = "log"\nmessage = "x2"'),
      action('kept', 'type = "database"\nfunction = "f"'),
      '[observers.new]\non = "a.b"',
      action('new', 'type = "log"\nmessage = "x"'),
    ].join('\n'),
  )
  expect(diffConfigurations(before, after)).toEqual({
    isEmpty: false,
    added: ['new'],
    removed: ['gone'],
    changed: [
      {
        name: 'kept',
        settings: [
          { path: 'observers.kept.on[1]', before: 'a.c', after: null },
          { path: 'observers.kept.actions[0]', before: 'log', after: 'other' },
          { path: 'observers.kept.actions[1]', before: 'other', after: 'log' },
        ],
        addedActions: ['database'],
        removedActions: ['webhook'],
        changedActions: [
          { name: 'log', settings: [{ path: 'observers.kept.actions.log.message', before: 'x', after: 'x2' }] },
        ],
      },
    ],
    settings: [
      { path: 'runtime.max_concurrency', before: '5', after: '6' },
      { path: 'runtime.record', before: 'all', after: null },
    ],
  })
})

it('tells that a secret changed without telling the secret', async () => {
  const text = (token: string) =>
    [
      `[providers.slack]\nwebhook_url = "${ref('SLACK')}"`,
      `[redis]\nurl = "redis://:${token}@cache"`,
      '[observers.a]\non = "a.b"',
      action(
        'a',
        `type = "webhook"\nurl = "https://x.example.com/?token=${token}"\nheaders = { X-Own = "${token}" }\nsecret = "${ref('KEY')}"`,
      ),
    ].join('\n')
  const before = await load(text('hunter2-one'), { SLACK: 'https://hooks.example.com/canary1', KEY: 'canary-key-1' })
  const after = await load(text('hunter2-two'), { SLACK: 'https://hooks.example.com/canary2', KEY: 'canary-key-1' })
  const diff = diffConfigurations(before, after)
  expect(JSON.stringify(diff)).not.toMatch(/hunter2|canary/)
  expect(diff.settings).toEqual([
    { path: 'providers.slack.webhook_url', before: '[secret env:SLACK]', after: '[secret env:SLACK]' },
    { path: 'redis.url', before: '***', after: '***' },
  ])
  expect(diff.changed[0]?.changedActions[0]?.settings.map(({ path }) => path)).toEqual([
    'observers.a.actions.webhook.url',
    'observers.a.actions.webhook.headers.X-Own',
  ])
})
