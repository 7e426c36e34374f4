/**
 * Services with other rules start beside one that reads: one with a group of its own, one without. Neither may take rules
 * away in silence.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const title = 'A process whose observers another one switches off says so, and groups keep their rules apart.'

const toml = (rules, group) =>
  `${group ? `group = "${group}"\n` : ''}${rules
    .map(
      (rule) =>
        `[observers.${rule}]\non = "lamp.lit"\n[[observers.${rule}.actions]]\ntype = "database"\nfunction = "${rule}"\n`,
    )
    .join('')}`

export async function run({ ac, sql, start, cli, folder, until, hold }) {
  await sql('create table seen (rule text, id text)')
  for (const rule of ['mail', 'erp', 'invoice']) {
    await sql(
      `create function ${rule}(event jsonb) returns void language sql as $$ insert into seen values ('${rule}', event ->> 'id') $$`,
    )
  }
  const startWith = (name, rules, group) => {
    const file = join(folder, `${name}.toml`)
    writeFileSync(file, toml(rules, group))
    return start('', { args: ['--config', file] })
  }
  const seenBy = async (id) => (await sql('select rule from seen where id = $1', [id])).map(({ rule }) => rule)
  const emitted = async (id, rules) => {
    await ac.emitNow('lamp.lit', { id, payload: {} })
    await until(
      async () => {
        const seen = await seenBy(id)
        return rules.every((rule) => seen.includes(rule))
      },
      `event ${id} was not seen by all of ${rules.join(', ')}`,
    )
  }

  const first = await startWith('first', ['mail', 'erp'])
  const billing = await startWith('billing', ['invoice'], 'billing')
  await emitted('a', ['mail', 'erp', 'invoice'])
  billing.kill()
  await billing.exited
  await emitted('b', ['mail', 'erp'])
  hold(!first.lines.some((line) => line.includes('superseded')), 'a group took rules of another one away')

  await startWith('second', ['mail'])
  const line = await first.line('superseded by a newer set of rules')
  hold(line.includes('erp') && !line.includes('mail'), `the first process did not name the rule it lost: ${line}`)
  const { stdout } = await cli('doctor', '--json')
  hold(
    /"check":"observers"/.test(stdout.replace(/\s/g, '')) && stdout.includes('erp'),
    `doctor does not name it: ${stdout}`,
  )
  await emitted('c', ['mail'])
}
