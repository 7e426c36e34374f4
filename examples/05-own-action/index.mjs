// Rules in aftercommit.toml use an action type that a package brings. Somebody comes to the door, and the bell rings.
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createAftercommit } from 'aftercommit'

const { promise: rung, resolve } = withResolvers()
const bell = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  response.end()
  resolve(JSON.parse(body))
}).listen(8787, '127.0.0.1')

const ac = createAftercommit({ database: process.env.DATABASE_URL }) // none: the embedded Postgres
await ac.migrate()
await ac.observers.loadFile(fileURLToPath(new URL('aftercommit.toml', import.meta.url)))
await ac.start()
await ac.transaction((tx) => tx.emit('visitor.arrived', { payload: { name: 'Ada' } }))

const { text, times } = await rung
console.log(`${Array(times).fill('ding').join(' ')}: ${text}`)
await ac.stop()
bell.close()

function withResolvers() {
  let resolve
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
