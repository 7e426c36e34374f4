/** Somebody who may write in Redis forges messages and the mark of the last one, on a real redis-server. */
import { redisListener } from 'aftercommit/redis'

export const title = 'Nothing that is written in Redis hides an event from a process or a listener, or makes one deaf.'

const channel = 'aftercommit:aftercommit:events'

export async function run({ start, redis, sql, hold, until }) {
  const { url, client } = await redis()
  const rule = '[observers.a]\non = "lamp.*"\n[[observers.a.actions]]\ntype = "log"\nmessage = "saw {{ event.id }}"\n'
  const served = await start(`[log]\nwake = "poll"\n[redis]\nurl = "${url}"\n${rule}`)
  const heard = []
  const listener = redisListener({ url, channel, onEvent: ({ id }) => heard.push(id), onGap: () => heard.push('gap') })
  await listener.start()
  const emit = (id) => sql(`select aftercommit.emit('lamp.lit', null, null, '{}', id => $1)`, [id])
  const arrives = async (id) => {
    await emit(id)
    await served.line(`saw ${id}`)
    await until(() => heard.includes(id), `the listener never heard ${id}`)
  }
  try {
    await arrives('first')
    const poisons = [`1:${'9'.repeat(30)}`, '1:9223372036854775807', '2:9223372036854775807', 'x'.repeat(1_000_000), '']
    for (const [at, poison] of poisons.entries()) {
      await client.set(`${channel}:last`, poison)
      await arrives(`poisoned-${at}`)
    }
    await client.del(`${channel}:last`)
    await client.lPush(`${channel}:last`, 'x')
    await arrives('after-a-list')

    const lie = { v: 1, type: 'lamp.lit', kind: 'custom', epoch: 1, version: null, aggregate: null, tenant: null }
    for (const position of ['1', '9', '9223372036854775807']) {
      const message = { ...lie, id: `forged-${position}`, type: 'lie.told', origin: 'x', position, previous: null }
      await client.publish(channel, JSON.stringify(message))
      await until(() => heard.includes(`forged-${position}`), 'the listener did not get the forged message')
      heard.splice(heard.indexOf(`forged-${position}`), 1)
      await arrives(`forged-${position}`)
    }
    for (const text of ['', 'no JSON', '['.repeat(100_000)]) await client.publish(channel, text)
    const before = heard.length
    await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await emit('last')
    await served.line('saw last')
    const isTold = () => ['last', 'gap'].some((word) => heard.slice(before).includes(word))
    await until(() => listener.ready && isTold(), 'the listener was not told of what came while it was cut off')
    hold(served.isRunning() && listener.ready, 'the process or the listener is not ready')
  } finally {
    await listener.stop()
  }
}
