// A small shop with live traffic. Orders are placed in a transaction together with their event; what is printed comes
// from the log, after the commit. Now and then a payment is refused and the transaction rolled back: such an order is
// never printed, because it never happened.

import { fileURLToPath } from 'node:url'
import { createAftercommit } from 'aftercommit'
import { serveConsole } from 'aftercommit/console'
import { startEmbedded } from 'aftercommit-embedded'
import { events } from './events.mjs'
import { parcel, parcelEffects } from './parcel.mjs'
import { createScreen } from './screen.mjs'
import { subscribe } from './subscriptions.mjs'
import { placeOrder, placeOrders } from './traffic.mjs'
import { serveOrders } from './web.mjs'

const screen = createScreen(process.stdout)
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort())

screen.step('starting the embedded Postgres')
const server = await startEmbedded({ onProgress: (step) => screen.progress(step) })
// Changes of the table `stock` are events as well: whoever writes it, in whatever way.
const ac = createAftercommit({ events, capture: { stock: {} }, database: server.url })
let web
let console
try {
  screen.step('migrating')
  await ac.transaction((tx) =>
    tx.query(`create table if not exists orders (
      id text primary key, customer text not null, total integer not null, placed_at timestamptz not null default now())`),
  )
  await ac.transaction((tx) =>
    tx.query(
      'create table if not exists sales (customer text primary key, orders integer not null, total bigint not null)',
    ),
  )
  await ac.transaction(async (tx) => {
    await tx.query('create table if not exists stock (product text primary key, units integer not null)')
    await tx.query("insert into stock values ('mug', 20), ('shirt', 20), ('poster', 20) on conflict do nothing")
  })
  await ac.migrate()
  subscribe(ac, screen)
  const port = Number(process.env.SHOP_PORT ?? 4401)
  web = await serveOrders(ac, {
    port,
    placeOrder,
    onText: (text) => screen.note(`SMS to the owner: ${text}`),
    onCourier: (isBroken) =>
      screen.note(isBroken ? 'the courier answers 503 from now on' : 'the courier answers again'),
  })
  process.env.SHOP_SMS_URL ??= web.url
  process.env.SHOP_SMS_TOKEN ??= 'none'
  await ac.observers.loadFile(fileURLToPath(new URL('aftercommit.toml', import.meta.url)), { watch: true })
  // A rule in code: its address is known only now. Break the courier on the order screen and watch it wait in the console.
  await ac.observers.add({
    name: 'tell_courier',
    on: 'order.shipped',
    retry: { maxAttempts: 8, initialDelay: '1s', maxDelay: '30s' },
    actions: [{ type: 'webhook', url: `${web.url}/courier/pickups` }],
  })
  ac.workflows.register(parcel, { effects: parcelEffects })
  await ac.start()
  console = await openConsole(ac)
  screen.ready(server, { orders: web.url, console: console.url })
  const traffic = placeOrders(ac, stopping.signal)
  for await (const event of ac.log.tail({ from: 'head', on: ['order.*'], signal: stopping.signal })) screen.event(event)
  await traffic
} finally {
  screen.step('stopping')
  await console?.close()
  await ac.stop()
  await web?.close()
  await server.stop()
  screen.end()
}

/** A port that is taken is no reason not to start: another one is. */
async function openConsole(instance) {
  const port = Number(process.env.CONSOLE_PORT ?? 4400)
  return serveConsole(instance, { port }).catch(() => serveConsole(instance, { port: 0 }))
}
