/** The live order screen: a page, the orders so far, and the feed that keeps it up to date. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const page = new URL('web/', import.meta.url)
const client = new URL('./', import.meta.resolve('aftercommit/client'))
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/** Answers the address it is served at. A port that is taken is no reason not to start: another one is. */
export async function serveOrders(ac, port) {
  // Everything here is shown to whoever may open this page, and that is this machine alone.
  const feed = ac.live.sse({ on: ['order.*'], authorize: () => 'visitor' })
  const server = createServer((req, res) => {
    answer(ac, feed, req, res).catch(() => {
      if (!res.headersSent) res.writeHead(500)
      res.end()
    })
  })
  const listen = (at) =>
    new Promise((resolve, reject) => {
      server.once('error', reject).listen(at, '127.0.0.1', resolve)
    })
  await listen(port).catch(() => listen(0))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answer(ac, feed, req, res) {
  const { pathname } = new URL(req.url, 'http://shop')
  if (pathname === '/live') return feed.node(req, res)
  if (pathname === '/orders') return send(res, 'application/json', JSON.stringify(await latestOrders(ac)))
  const asset = toAsset(pathname)
  if (asset === undefined) return void res.writeHead(404).end()
  send(res, types[extname(asset.pathname)], await readFile(fileURLToPath(asset)))
}

/** Two folders and no others; what a browser asks for names a file in one of them. */
function toAsset(pathname) {
  if (pathname === '/') return new URL('orders.html', page)
  const [, folder, name] = /^\/(web|client)\/([a-z-]+\.(?:js|css))$/.exec(pathname) ?? []
  return folder && new URL(name, folder === 'web' ? page : client)
}

function send(res, type, body) {
  res.writeHead(200, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
  })
  res.end(body)
}

async function latestOrders(ac) {
  const { rows } = await ac.transaction((tx) =>
    tx.query('select id, customer, total, placed_at as "placedAt" from orders order by placed_at desc limit 30'),
  )
  return rows
}
