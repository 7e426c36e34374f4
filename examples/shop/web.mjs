/** The live order screen: a page, the orders so far, and the feed that keeps it up to date. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const page = new URL('web/', import.meta.url)
const client = new URL('./', import.meta.resolve('aftercommit/client'))
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/**
 * Answers the address it is served at. A port that is taken is no reason not to start: another one is. `onText` is told of
 * messages to the gateway that stands for a provider of SMS.
 */
export async function serveOrders(ac, { port, onText, onCourier, placeOrder }) {
  const courier = { isBroken: false }
  // Everything here is shown to whoever may open this page, and that is this machine alone.
  const feed = ac.live.sse({ on: ['order.*'], authorize: () => 'visitor' })
  const server = createServer((req, res) => {
    answer(ac, { feed, onText, onCourier, placeOrder, courier }, req, res).catch(() => {
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

async function answer(ac, { feed, onText, onCourier, placeOrder, courier }, req, res) {
  // A name of somebody else that leads to this machine is not answered.
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(req.headers.host ?? '')) return void res.writeHead(421).end()
  const { pathname, searchParams } = new URL(req.url, 'http://shop')
  if (pathname === '/live') return feed.node(req, res)
  if (req.method === 'POST') {
    if (pathname === '/courier/pickups') return takeParcel(courier, req, res)
    if (!isOwnPage(req)) return takeText(onText, req, res)
    if (pathname === '/orders') return sendJson(res, { id: await placeOrder(ac).catch(() => null) })
    if (pathname === '/courier/break' || pathname === '/courier/mend') {
      courier.isBroken = pathname.endsWith('break')
      onCourier(courier.isBroken)
      return sendJson(res, courier)
    }
    return void res.writeHead(404).end()
  }
  if (pathname === '/courier') return sendJson(res, courier)
  if (pathname === '/orders') return sendJson(res, await latestOrders(ac, searchParams.get('q') ?? ''))
  if (pathname === '/sales') return sendJson(res, await sales(ac))
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

function sendJson(res, value) {
  send(res, 'application/json', JSON.stringify(value))
}

/** The newest, or those that the search index knows by these words. */
async function latestOrders(ac, words) {
  const found = words === '' ? null : await ac.search.query('orders', words, { limit: 30 })
  const { rows } = await ac.transaction((tx) =>
    tx.query(
      `select id, customer, total, placed_at as "placedAt" from orders
        where $1::text[] is null or id = any ($1) order by placed_at desc limit 30`,
      [found === null ? null : found.hits.map(({ id }) => id)],
    ),
  )
  return rows
}

/** Kept in memory until an order is placed, by whichever process. */
function sales(ac) {
  return ac.cache.get('sales', async () => {
    const { rows } = await ac.transaction((tx) =>
      tx.query('select count(*)::int as orders, coalesce(sum(total), 0)::float as total from orders'),
    )
    return rows[0]
  })
}

/** What a provider of SMS would answer. */
async function takeText(onText, req, res) {
  let body = ''
  for await (const chunk of req.setEncoding('utf8')) {
    body += chunk
    if (body.length > 10_000) return void res.writeHead(413).end()
  }
  onText(new URLSearchParams(body).get('Body'))
  res.writeHead(201, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ sid: `SM${randomUUID().replaceAll('-', '')}`, status: 'queued' }))
}

/** A button of the page, and no page of somebody else. */
function isOwnPage(req) {
  return req.headers['sec-fetch-site'] === 'same-origin'
}

/** The courier: takes a parcel, or answers 503 while it is broken. */
async function takeParcel(courier, req, res) {
  for await (const _ of req);
  res.writeHead(courier.isBroken ? 503 : 202).end()
}
