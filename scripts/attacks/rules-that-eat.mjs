/** Payloads under 1 MB meet rules that look harmless: they must neither take the memory of the process nor its time. */
export const title = 'No payload makes a condition take the memory of the process, or hold it up for seconds.'

const conditions = {
  joined: 'items.map(i, prefix + i.sku).exists(t, t == prefix)',
  starts: 'items.exists(i, !prefix.startsWith(other))',
  equal: 'items.exists(i, prefix != other)',
  matched: "items.exists(i, prefix.matches('[^y]{1,500}y'))",
  fields: 'items.exists(i, size(wide) == 0)',
  digits: 'items.exists(i, total + i.n == 5)',
  ordered: 'items.exists(i, total < i.n)',
  zones: 'items.exists(i, timestamp(at).getHours(prefix) == 30 || timestamp(at).getHours(i.sku) == 30)',
}
const toml = `[runtime]\nrecord = "all"\n${Object.entries(conditions)
  .map(
    ([name, when]) =>
      `[observers.${name}]\non = "lamp.*"\ncondition = ${JSON.stringify(when)}\n[[observers.${name}.actions]]\ntype = "log"\n`,
  )
  .join('')}
[observers.plain]
on = "lamp.*"
[[observers.plain.actions]]
type = "log"
message = "plain saw {{ event.id }}"
`

export async function run({ start, sql, hold }) {
  const served = await start(toml, { env: { NODE_OPTIONS: '--max-old-space-size=512' } })
  const payload = {
    prefix: 'x'.repeat(250_000),
    other: 'x'.repeat(250_000),
    items: Array.from({ length: 10_000 }, (_, at) => ({ sku: `s${at}`, n: at })),
    at: '2026-03-01T12:00:00Z',
    wide: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, at])),
  }
  const text = `${JSON.stringify(payload).slice(0, -1)}, "total": ${'7'.repeat(50_000)}}`
  for (const id of ['one', 'two', 'three']) {
    await sql('select aftercommit.emit($1, null, null, $2::jsonb, id => $3)', ['lamp.lit', text, id])
  }
  for (const id of ['one', 'two', 'three']) await served.line(`plain saw ${id}`)
  hold(served.isRunning(), 'the process died')
  // A condition that spends its budget is an error of its rule, and a dead letter after its last attempt. Another matter is an
  // event that ends the process.
  const died = await sql(`select 1 from aftercommit.letters where error ->> 'code' = 'PROCESS_DIED'`)
  hold(died.length === 0, 'an event ended the process')
}
