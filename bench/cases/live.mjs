/**
 * Live feeds. Latency: from the answer to COMMIT here until a client has the event from an instance in another process.
 * Load: clients in one process, their server in another, events written here, all on one machine.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect as dial } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { atLeast, atMost } from '../goals.mjs'
import { connect, payload, percentile, perSecond, withLog } from '../measure.mjs'

const SAMPLES = 300
const CLIENTS = 1_000
const PER_SECOND = 200
const SECONDS = 20

export function run({ url }) {
  return withLog(url, 'bench_live', async (ac) => {
    const { clients, end } = await connect(url, 8)
    const server = start('live-server.mjs', url, 'bench_live')
    const { port } = await answer(server)
    const times = await measureLatency(ac, clients[0], port)
    const load = await measureLoad(ac, clients, port, server)
    server.send('end')
    await once(server, 'exit')
    await end()
    return {
      title: `live: one client while it is quiet; ${CLIENTS} clients at ${PER_SECOND} events/s for ${SECONDS} s`,
      figures: [
        ['commit to client on another instance', `${show(times, 0.5)} / ${show(times, 0.99)} ms (p50 / p99)`],
        ['events got by all clients', `${load.least} of ${load.sent}, most ${load.most}, ${load.broken} cut off`],
        ['written', perSecond(load.sent / load.seconds)],
        ['server: processor', `${load.cores.toFixed(2)} cores`],
        ['server: memory', `${(load.rss / 1e6).toFixed(0)} MB`],
      ],
      goals: [
        atMost('p50', percentile(times, 0.5), 10, 'ms'),
        atLeast('share of events got', load.broken > 0 || load.most > load.sent ? 0 : load.least / load.sent, 1),
        atLeast('share of the rate reached', load.sent / load.seconds / PER_SECOND, 0.95),
        atMost('server processor', load.cores, 1, 'cores'),
        atMost('server memory', load.rss / 1e6, 300, 'MB'),
      ],
    }
  })
}

async function measureLatency(ac, client, port) {
  const arrived = new Map()
  const socket = dial(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    const now = performance.now()
    text += chunk
    for (const [, id] of text.matchAll(/"id":"([^"]+)"/g)) if (!arrived.has(id)) arrived.set(id, now)
    text = text.slice(-500)
  })
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  // The reader arms itself once the system has been quiet for a second.
  await sleep(2_500)
  const times = []
  for (let sample = 0; sample < SAMPLES; sample++) {
    const { id } = await ac.emitNow(client, 'order.placed', { payload })
    const committed = performance.now()
    await sleep(20)
    while (!arrived.has(id)) await sleep(1)
    times.push(Math.max(0, arrived.get(id) - committed))
  }
  socket.destroy()
  return times
}

async function measureLoad(ac, writers, port, server) {
  const clients = start('live-clients.mjs', port, CLIENTS)
  await once(clients, 'message')
  const before = await ask(server, 'usage')
  const began = performance.now()
  const sent = PER_SECOND * SECONDS
  const writing = writers.map(async (writer, number) => {
    for (let n = number; n < sent; n += writers.length) {
      const ahead = began + (n * 1_000) / PER_SECOND - performance.now()
      if (ahead > 1) await sleep(ahead)
      await ac.emitNow(writer, 'order.placed', { payload })
    }
  })
  await Promise.all(writing)
  const seconds = (performance.now() - began) / 1_000
  const after = await ask(server, 'usage')
  let counts = await ask(clients, 'counts')
  for (let tries = 0; counts.least < sent && tries < 50; tries++) {
    await sleep(200)
    counts = await ask(clients, 'counts')
  }
  clients.send('end')
  await once(clients, 'exit')
  return { ...counts, sent, seconds, cores: (after.cpuMs - before.cpuMs) / 1_000 / seconds, rss: after.maxRss }
}

function start(script, ...args) {
  return fork(fileURLToPath(new URL(`../${script}`, import.meta.url)), args.map(String))
}

async function ask(child, question) {
  const answered = answer(child)
  child.send(question)
  return answered
}

async function answer(child) {
  const [message] = await once(child, 'message')
  return message
}

function show(times, share) {
  return percentile(times, share).toFixed(2)
}
