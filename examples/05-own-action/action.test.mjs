import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, it } from 'node:test'
import { describeActionType, testEvent } from 'aftercommit/testing'
import bell from './action.mjs'

// #region contract
describeActionType('a bell', createBell, {
  describe,
  it,
  expect: (actual) => ({ toEqual: (expected) => assert.deepStrictEqual(actual, expected) }),
})

async function createBell() {
  const calls = []
  let answer = (response) => response.end()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    calls.push(`${request.headers['idempotency-key']} ${body}`)
    answer(response, body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    type: bell,
    config: { url: `http://127.0.0.1:${server.address().port}/ring`, text: '{{ name }} is here' },
    event: testEvent('visitor.arrived', { payload: { name: 'Ada' } }),
    wrong: { config: { url: 'nowhere', text: '{{ }}' }, keys: ['url', 'text'] },
    settings: { network: { allow: ['127.0.0.1'] } },
    received: () => calls,
    sendsKey: true,
    fail: () => {
      answer = (response, body) => response.writeHead(500).end(body)
    },
    hang: () => {
      answer = () => {}
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
// #endregion
