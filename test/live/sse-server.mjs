// An instance with a live feed at /feed, and the built client for browsers at /client. Usage: node sse-server.mjs <url> <port>
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createAftercommit } from 'aftercommit'

const [database, port] = process.argv.slice(2)
const ac = createAftercommit({ database })
const feed = ac.live.sse({
  authorize: (request) => (request.headers.get('authorization') === 'Bearer of news' ? 'reader' : null),
  heartbeat: '300ms',
})
const dist = new URL('.', import.meta.resolve('aftercommit/client'))

const server = createServer((req, res) => {
  const { pathname } = new URL(req.url, 'http://localhost')
  const file = /^\/client\/([\w-]+\.js)$/.exec(pathname)?.[1]
  if (pathname === '/feed') void feed.node(req, res)
  else if (file) res.setHeader('content-type', 'text/javascript').end(readFileSync(fileURLToPath(new URL(file, dist))))
  else res.setHeader('content-type', 'text/html').end('<!doctype html><title>feed</title>')
})
server.listen(Number(port ?? 0), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
