/** The orders as they come. The page keeps nothing but what it shows: the feed says what is new, the shop what was. */
import { connect } from '/client/index.js'

const SHOWN = 30
const steps = ['placed', 'paid', 'shipped']
const orders = new Map()
const counts = { placed: 0, paid: 0, shipped: 0 }
const body = document.getElementById('orders')
const words = document.getElementById('words')
const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

connect({
  url: '/live',
  onEvent(event) {
    document.getElementById('position').textContent = event.position
    note(event)
    if (words.value === '') draw(event.aggregateid, true)
    if (event.type === 'order.placed') void showSales()
  },
  // The place in the log is worth nothing any more: what there is now is asked for again.
  onResync: load,
  onState(state) {
    const shown = document.getElementById('state')
    shown.textContent = { connecting: 'connecting', open: 'live', waiting: 'away, trying again', closed: 'closed' }[
      state
    ]
    shown.dataset.state = state
  },
})
words.addEventListener('input', load)
document.getElementById('place').addEventListener('click', place)
document.getElementById('courier').addEventListener('click', toggleCourier)
await Promise.all([load(), showSales()])

/** The newest orders, or those that were searched for. */
async function load() {
  const asked = words.value
  const response = await fetch(`/orders?q=${encodeURIComponent(asked)}`).catch(() => undefined)
  // Somebody may have gone on typing meanwhile.
  if (!response?.ok || asked !== words.value) return
  body.replaceChildren()
  for (const { id, customer, total, placedAt } of (await response.json()).reverse()) {
    orders.set(id, { customer, total, placed: placedAt, paid: true, ...orders.get(id) })
    draw(id, false)
  }
}

async function showSales() {
  const response = await fetch('/sales').catch(() => undefined)
  if (!response?.ok) return
  document.getElementById('sales').textContent = money.format((await response.json()).total / 100)
}

function note({ type, aggregateid: id, time, data }) {
  const step = type.split('.')[1]
  orders.set(id, { ...orders.get(id), ...data, [step]: time })
  counts[step]++
  document.getElementById(step).textContent = counts[step]
}

function draw(id, isNew) {
  const order = orders.get(id)
  const row = document.getElementById(id) ?? document.createElement('tr')
  row.id = id
  row.replaceChildren(
    cell(id),
    cell(order.customer ?? '…'),
    total(order),
    ...steps.map((step) => cell(when(order[step]))),
  )
  if (isNew) row.className = 'new'
  if (!row.isConnected) body.prepend(row)
  while (body.rows.length > SHOWN) {
    orders.delete(body.lastElementChild.id)
    body.lastElementChild.remove()
  }
}

function total({ total: cents }) {
  const made = cell(cents === undefined ? '…' : money.format(cents / 100))
  made.className = 'number'
  return made
}

/** Of orders from before this page was opened it is only known that they were paid. */
function when(time) {
  return time === true ? '✓' : time === undefined ? '' : clock.format(new Date(time))
}

function cell(text) {
  const made = document.createElement('td')
  made.textContent = text
  return made
}

async function place() {
  const { id } = await (await fetch('/orders', { method: 'POST' })).json()
  tell(id === null ? 'its payment was refused: rolled back, so it never happened' : `order ${id} was placed`)
}

/** While the courier is broken, webhooks wait behind its circuit; the console shows them. */
async function toggleCourier({ target }) {
  const isBroken = target.textContent.startsWith('Mend')
  const courier = await (await fetch(isBroken ? '/courier/mend' : '/courier/break', { method: 'POST' })).json()
  target.textContent = courier.isBroken ? 'Mend the courier' : 'Break the courier'
  tell(
    courier.isBroken ? 'the courier answers 503: see the console' : 'the courier answers again: what waited goes out',
  )
}

function tell(text) {
  document.getElementById('told').textContent = text
}
