/** Far behind: 10,000 events with a handler that takes 1 ms, and the memory of a process that works off a million. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { uuidv7 } from 'uuidv7'
import { atMost } from '../goals.mjs'
import { connect, payload, withLog } from '../measure.mjs'

const million = 1_000_000

export function run({ url }) {
  return withLog(url, 'bench_backlog', async (ac) => {
    const { clients, end } = await connect(url, 1)
    await append(ac, clients[0], 10_000)
    const slow = await workOff(url, 10_000, 1)
    await append(ac, clients[0], million - 10_000)
    const large = await workOff(url, million, 0)
    await end()
    return {
      title: 'backlog: working off what piled up',
      figures: [
        ['10,000 events, handler of 1 ms', `${slow.seconds.toFixed(1)} s`],
        ['1,000,000 events, no-op handler', `${large.seconds.toFixed(1)} s`],
        ['memory at a tenth / at the end', `${large.early} / ${large.late} MB RSS, most ${large.most} MB`],
      ],
      goals: [atMost('10,000 behind', slow.seconds, 60, 's'), atMost('memory', large.most, 200, 'MB')],
    }
  })
}

async function append(ac, client, count) {
  const batch = () => ({ type: 'order.placed', aggregate: { type: 'order', id: uuidv7() }, payload })
  for (let done = 0; done < count; done += 1_000) await ac.emitNow(client, Array.from({ length: 1_000 }, batch))
}

async function workOff(url, count, handlerMs) {
  const worker = fileURLToPath(new URL('../backlog-worker.mjs', import.meta.url))
  const child = fork(worker, [url, 'bench_backlog', String(count), String(handlerMs)])
  const [result] = await once(child, 'message')
  await once(child, 'exit')
  return result
}
