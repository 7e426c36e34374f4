/**
 * Who takes part in a journey from events to webhooks: aftercommit, the same with JIT off, graphile-worker, and bare POSTs.
 * All of them call one receiver, a process of its own.
 */
import { randomUUID } from 'node:crypto'
import { payload } from '../measure.mjs'
import { openAftercommit, toRules } from './aftercommit.mjs'
import { now, startChild } from './child.mjs'
import { openGraphile } from './graphile.mjs'
import { GRAPHILE, OURS, OURS_JIT_OFF, POSTS } from './names.mjs'

/**
 * `observers` are the rules by name; `ours`, `peer` and `bare` are options of each contender. JIT off is left out where
 * the server has no JIT.
 */
export async function openWebhooks(
  { server, own },
  { observers = { call: { on: '"call.placed"' } }, ours = {}, peer = {}, bare = {} } = {},
) {
  const receiver = await own(startChild('./receiver-process.mjs'))
  const url = `http://127.0.0.1:${await receiver.ask('port')}`
  const rules = toRules(url, observers)
  const hasJit = server.about.jit === 'on'
  const contenders = {
    [OURS]: await own(openAftercommit({ server, name: 'ours', rules, ...ours })),
    ...(hasJit && {
      [OURS_JIT_OFF]: await own(openAftercommit({ server, name: 'ours_jit_off', jit: 'off', rules, ...ours })),
    }),
    [GRAPHILE]: await own(openGraphile({ server, name: 'peer', receiver: url, ...peer })),
    [POSTS]: await own(openPosts({ receiver: url, ...bare })),
  }
  for (const contender of Object.values(contenders)) await contender.start()
  return { expect: (wanted) => receiver.ask('expect', wanted), contenders }
}

/** What an application would have to tell: one of these becomes one event, or one job. */
export function toCalls(count, type = 'call.placed') {
  return Array.from({ length: count }, (_, call) => ({
    specversion: '1.0',
    id: randomUUID(),
    source: 'urn:aftercommit:bench',
    type,
    time: new Date().toISOString(),
    datacontenttype: 'application/json',
    data: { call, sent: now(), ...payload },
  }))
}

/**
 * Commits the calls at once and waits until each was answered and the database says that nothing is left. Times are
 * counted from COMMIT.
 */
export async function playCalls(contender, expect, calls, wanted) {
  const ended = expect({ calls: calls.length, ...wanted })
  const committed = await contender.commit(calls)
  const heard = await ended
  if (heard.answered < heard.calls) throw new Error(`${heard.answered} of ${heard.calls} calls came in time`)
  await contender.settled()
  return { ...heard, lastMs: heard.lastAt - committed, settledMs: now() - committed }
}

async function openPosts({ toPosts = (call) => call, ...config }) {
  const child = await startChild('./posts-process.mjs', config)
  return {
    async start() {},
    async stop() {},
    commit: (calls) => child.ask('post', calls.flatMap(toPosts)),
    async settled() {},
    close: () => child.close(),
  }
}
