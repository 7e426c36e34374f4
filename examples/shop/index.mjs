// A small shop with live traffic. Orders are placed in a transaction together with their event; what is printed comes
// from the log, after the commit. Now and then a payment is refused and the transaction rolled back: such an order is
// never printed, because it never happened.

import { fileURLToPath } from 'node:url'
import { createAftercommit } from 'aftercommit'
import { startEmbedded } from 'aftercommit-embedded'
import { events } from './events.mjs'
import { createScreen } from './screen.mjs'
import { subscribe } from './subscriptions.mjs'
import { placeOrders } from './traffic.mjs'
import { serveOrders } from './web.mjs'

const screen = createScreen(process.stdout)
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort())

screen.step('starting the embedded Postgres')
const server = await startEmbedded({ onProgress: (step) => screen.progress(step) })
const ac = createAftercommit({ events, database: server.url })
let web
try {
  screen.step('migrating')
  await ac.migrate()
  await ac.transaction((tx) =>
    tx.query(`create table if not exists orders (
      id text primary key, customer text not null, total integer not null, placed_at timestamptz not null default now())`),
  )
  await ac.transaction((tx) =>
    tx.query(
      'create table if not exists sales (customer text primary key, orders integer not null, total bigint not null)',
    ),
  )
  subscribe(ac, screen)
  const port = Number(process.env.SHOP_PORT ?? 4401)
  web = await serveOrders(ac, { port, onText: (text) => screen.note(`SMS to the owner: ${text}`) })
  process.env.SHOP_SMS_URL ??= web.url
  process.env.SHOP_SMS_TOKEN ??= 'none'
  await ac.observers.loadFile(fileURLToPath(new URL('aftercommit.toml', import.meta.url)), { watch: true })
  await ac.start()
  screen.ready(server, web.url)
  const traffic = placeOrders(ac, stopping.signal)
  for await (const event of ac.log.tail({ from: 'head', on: ['order.*'], signal: stopping.signal })) screen.event(event)
  await traffic
} finally {
  screen.step('stopping')
  await ac.stop()
  await web?.close()
  await server.stop()
  screen.end()
}
