/** Somebody who may emit events puts sequences that a terminal obeys, and marks that turn text around, into names and payloads. */
export const title = 'No command, error or log prints control or bidirectional characters that came with an event.'

const clear = '\u009b2J'
const turned = '\u202egnp.exe\u202c'
const toml = `
[network]
allow = ["127.0.0.1"]
[observers.broken]
on = "lamp.*"
[[observers.broken.actions]]
type = "webhook"
url = "http://127.0.0.1:9999/"
headers = { x-name = "{{ name }}" }
`

export async function run({ start, cli, sql, hold, until }) {
  const served = await start(toml)
  const payload = JSON.stringify({ name: `${clear}${turned}`, [turned]: clear })
  await sql('select aftercommit.emit($1, $2, $3, $4::jsonb)', ['lamp.lit', 'lamp', `house-${turned}`, payload])
  await until(async () => (await sql('select 1 from aftercommit.letters')).length > 0, 'no dead letter was written')
  const [{ id }] = await sql('select id from aftercommit.events')
  const name = `name-${clear}${turned}`
  const commands = [
    ...[
      ['dlq', 'export'],
      ['dlq', 'list', '--json'],
      ['dlq', 'show', '1', '--json'],
      ['dlq', 'show', '1'],
    ],
    ...[
      ['events', 'list', '--json'],
      ['events', 'list'],
      ['events', 'show', id, '--json'],
      ['events', 'show', id],
    ],
    ...[['status', '--json'], ['status'], ['doctor', '--json'], ['observers', 'list', '--json']],
    ...[
      ['events', 'show', name],
      ['events', 'show', name, '--json'],
      ['subscriptions', 'show', name],
    ],
    ...[['subscriptions', 'show', name, '--json'], ['events', 'list', '--type', name], ['events', name], [name]],
    ...[
      ['events', 'emit', name, '{}'],
      ['--config', name, 'config', 'show'],
      ['--config', name, 'status', '--json'],
    ],
  ]
  for (const words of commands) {
    const { stdout, stderr } = await cli(...words)
    hold(stdout + stderr !== '', `aftercommit ${words.join(' ')} printed nothing`)
    hold(
      !UNSAFE.test(stdout + stderr),
      `aftercommit ${JSON.stringify(words)} printed ${JSON.stringify(stdout + stderr)}`,
    )
  }
  const exported = JSON.parse((await cli('dlq', 'export')).stdout)
  hold(exported.event.payload[turned] === clear, 'dlq export changed the payload')
  served.kill()
  await served.exited
  hold(!UNSAFE.test(served.lines.join('')), 'the log of `aftercommit start` printed it')
}

const UNSAFE = /[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/
