/**
 * The other end of webhooks: answers each call after a while, and says when it answered the last one. `expect` begins a
 * turn and forgets the one before. A call is known by its path and by the number in its body.
 */
import { createServer } from 'node:http'
import { percentile } from '../statistics.mjs'
import { now, serve } from './child.mjs'

const NUMBER = /"call":(\d+)/
/** When the caller committed to it, on the clock that all processes share. */
const SENT = /"sent":([\d.]+)/

let turn = createTurn({ calls: 0, answerMs: 0 })

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => turn.receive(request.url, Buffer.concat(chunks).toString(), response))
})
// A connection that is closed while a call is on its way would be a failure that no receiver meant.
server.keepAliveTimeout = 600_000
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

serve({
  port: () => server.address().port,
  expect(wanted) {
    turn = createTurn(wanted)
    return turn.ended
  },
})

/** Until `calls` different calls were answered with 200, or time is up. The first `refusals` attempts of each get 503. */
function createTurn({ calls, answerMs, refusals = 0, deadlineMs = 60_000 }) {
  const attempts = new Map()
  const refusedAt = new Map()
  const latencies = []
  const waits = []
  let [answered, open, mostAtOnce, lastAt] = [0, 0, 0, 0]
  let end = () => {}
  const ended = new Promise((resolve) => {
    end = () => {
      clearTimeout(tooLong)
      resolve(summarize())
    }
  })
  const tooLong = setTimeout(() => end(), deadlineMs)

  function receive(path, body, response) {
    const key = `${path} ${NUMBER.exec(body)?.[1]}`
    const attempt = (attempts.get(key) ?? 0) + 1
    attempts.set(key, attempt)
    const sent = SENT.exec(body)
    if (sent && attempt === 1) latencies.push(now() - Number(sent[1]))
    if (attempt > 1 && attempt <= refusals + 1) waits.push(now() - refusedAt.get(key))
    open++
    mostAtOnce = Math.max(mostAtOnce, open)
    setTimeout(() => answer(key, attempt, response), answerMs)
  }

  function answer(key, attempt, response) {
    open--
    response.statusCode = attempt <= refusals ? 503 : 200
    response.end('ok')
    if (attempt <= refusals) refusedAt.set(key, now())
    if (attempt !== refusals + 1) return
    answered++
    lastAt = now()
    if (answered === calls) end()
  }

  /** `repeats`: calls that came again although they had been answered or were under way. */
  function summarize() {
    const received = [...attempts.values()]
    const repeats = received.reduce((sum, count) => sum + Math.max(0, count - refusals - 1), 0)
    return { calls, answered, repeats, mostAtOnce, lastAt, latency: spreadOf(latencies), wait: spreadOf(waits) }
  }

  return { receive, ended }
}

function spreadOf(times) {
  if (times.length === 0) return null
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), worst: Math.max(...times) }
}
