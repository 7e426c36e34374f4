/** A fresh process that loads so many observers from TOML, two actions each, and says how long that took in ms. */
import { checkOnlyPorts, loadConfigurationFile } from '../dist/observers/index.js'

const text = Array.from({ length: Number(process.argv[2]) }, (_, n) => toObserver(n)).join('\n')
const began = { wall: performance.now(), cpu: process.cpuUsage() }
const checked = await loadConfigurationFile({ text, name: 'observers.toml' }, checkOnlyPorts({ TOKEN: 'x' }))
const wall = performance.now() - began.wall
const { user, system } = process.cpuUsage(began.cpu)
if (!checked.ok) throw new Error(checked.mistakes[0].message)
console.log(
  JSON.stringify({ wall, cpu: (user + system) / 1_000, imported: began.wall, kilobytes: text.length / 1_024 }),
)

function toObserver(n) {
  return `
[observers.rule_${n}]
on = ["order.placed", "order.item_${n}.*"]
entity = "order"
condition = "total > ${n} && customer.tier == 'gold' && status_changed_to('shipped')"
retry = { max_attempts = 5, initial_delay = "2s" }

[[observers.rule_${n}.actions]]
type = "webhook"
name = "tell"
url = "https://crm-${n % 50}.example.com/orders/{{ event.aggregate_id }}"
headers = { x-source = "shop", authorization = "\${env:TOKEN}" }
body = { id = "{{ event.id }}", total = "{{ total }}", name = "{{ customer.name | upper }}" }

[[observers.rule_${n}.actions]]
type = "log"
message = "order {{ event.aggregate_id }} of {{ customer.name | default('a guest') }} for {{ total | currency('EUR') }}"
`
}
