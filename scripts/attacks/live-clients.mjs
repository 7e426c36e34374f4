/** Clients of live feeds that ask for little and cost much: aliases, patterns made for backtracking, mute connections. */
import { once } from 'node:events'
import { connect } from 'node:net'

export const title = 'No client of a live feed multiplies answers, slows others down or holds places without a name.'

const headers = { authorization: 'Bearer eve', accept: 'text/event-stream' }

export async function run({ mount, ac, sql, hold, until, quick }) {
  const { address, isRunning } = await mount({ heapMb: 256, graphql: { maxClients: 3 } })
  const payload = { text: 'x'.repeat(900_000) }
  await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'large', payload, aggregate: { type: 'lamp', id: '1' } }))

  const aliases = Array.from({ length: 300 }, (_, at) => `a${at}: payload`).join(' ')
  const nested = `subscription { events(from: "1.0") { ...F } } fragment F on Event { ${aliases} }`
  for (const query of [`subscription { events(from: "1.0") { ${aliases} } }`, nested]) {
    const text = await readSome(post(address, query), 2_000_000)
    hold(text.length < 100_000 && text.includes('aliases'), `300 aliases were answered with ${text.length} bytes`)
  }
  const ten = Array.from({ length: 10 }, (_, at) => `a${at}: payload`).join(' ')
  const text = await readSome(post(address, `subscription { events(from: "1.0") { ${ten} } }`), 2_000_000)
  hold(text.includes('TOO_LARGE'), `an answer of 9 MB was not refused: ${text.slice(0, 200)}`)

  // Mute WebSockets take no place, and are cut off whether they answer or not.
  const { hostname, port } = new URL(address)
  const mute = Array.from({ length: 10 }, () => {
    const socket = connect(Number(port), hostname)
    const key = 'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='
    const upgrade = 'upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-protocol: graphql-transport-ws'
    socket.on('error', () => {}).resume()
    socket.write(`GET /graphql HTTP/1.1\r\nhost: ${hostname}\r\n${upgrade}\r\n${key}\r\n\r\n`)
    return once(socket, 'close')
  })
  const served = await post(address, 'subscription { events(from: "1.0") { id } }')
  hold(served.status === 200, `beside mute connections a client was answered ${served.status}`)
  await served.body.cancel()
  await Promise.all(mute)

  // Patterns that a regular expression takes for ever to refuse.
  const type = `lamp.${'a'.repeat(40)}`
  const count = quick ? 2_000 : 20_000
  await sql(`select aftercommit.emit($1, null, null, '{}') from generate_series(1, $2)`, [type, count])
  const many = Array.from({ length: 40 }, (_, at) => `lamp.${'a*'.repeat(20)}b${at}`).join(',')
  const refused = await fetch(`${address}/sse?types=${encodeURIComponent(many)}&from=1.0`, { headers })
  hold(refused.status === 400, `patterns of 20 wildcards were answered ${refused.status}`)
  await refused.body?.cancel()
  const costly = Array.from({ length: 50 }, (_, at) => `lamp.a*a*a*a*b${at}`).join(',')
  const eves = await Promise.all(
    Array.from({ length: 8 }, () => fetch(`${address}/sse?types=${encodeURIComponent(costly)}&from=1.0`, { headers })),
  )
  const quickly = await readSome(
    fetch(`${address}/sse?types=lamp.lit&from=1.0`, { headers }),
    2_000_000,
    '"id":"large"',
  )
  hold(quickly.includes('"id":"large"'), 'a client beside costly ones did not get its event')
  for (const eve of eves) await eve.body.cancel()
  await until(() => isRunning(), 'the process died')
}

function post(address, query) {
  return fetch(`${address}/graphql`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
}

/** Reads up to so many characters, or up to what is wanted. */
async function readSome(answered, most, wanted) {
  const { body } = await answered
  let text = ''
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length >= most || (wanted ? text.includes(wanted) : text.includes('event: next'))) break
  }
  return text
}
