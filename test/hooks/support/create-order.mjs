// A program that creates an order through evented storage and is killed on the way: between the write and the emit
// (`write`), between the emit and the commit (`emit`), or after the commit (`commit`).
// Usage: node create-order.mjs <url> <write|emit|commit>
import { createAftercommit, eventedStorage } from 'aftercommit'
import pg from 'pg'
import { orderRepository } from './order-repository.mjs'

const [url, when] = process.argv.slice(2)
const die = async (now) => {
  if (now !== when) return
  console.log(`dying after ${now}`)
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}
const ac = createAftercommit({ database: url })
const repository = orderRepository(new pg.Pool({ connectionString: url }), { afterWrite: () => die('write') })
const orders = eventedStorage(repository, {
  entity: 'order',
  async emit(tx, events) {
    await ac.emit(tx, events)
    await die('emit')
  },
})
await orders.create({ id: '42', total: 90 })
await die('commit')
