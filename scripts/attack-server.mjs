/**
 * The handlers an attack talks to, in a process of its own: `/sse`, `/graphql` and `/inbound` on one loopback server.
 * Every client with a bearer token is let in and called by it. Usage: node attack-server.mjs <url> <options as JSON>
 */
import { createServer } from 'node:http'
import { createAftercommit } from 'aftercommit'

const [database, given = '{}'] = process.argv.slice(2)
const options = JSON.parse(given)
const ac = createAftercommit({ database })
await ac.start()
const authorize = (request) => /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? null
const sse = ac.live.sse({ authorize, ...options.sse })
const graphql = await ac.live.graphql({ authorize, ...options.graphql })
const proof = options.inbound?.secret === undefined ? { token: 'a-token-that-no-client-guesses' } : {}
const inbound = ac.live.inbound({ allow: ['lamp.*'], ...proof, ...options.inbound })

const server = createServer((req, res) => {
  const path = req.url.split('?')[0]
  const handler = { '/sse': sse, '/graphql': graphql, '/inbound': inbound }[path]
  if (handler) void handler.node(req, res)
  else res.writeHead(404).end()
})
await graphql.attach(server)
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
