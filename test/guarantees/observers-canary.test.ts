/**
 * A secret stands in every place where one can stand, and everything that can fail does, with receivers that repeat what
 * they were sent. Then everything that people or machines get to read is searched for it.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { type CliOptions, runCli, startCli } from '../cli/support.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { closedPort, httpReceiver } from '../support/receivers.ts'
import { smtpReceiver } from '../support/receivers-smtp.ts'
import { openObserving } from './support/observe.ts'
import {
  brokenRules,
  type Canaries,
  canaryRules,
  deadPerLamp,
  findCanaries,
  hatchCanaries,
  publicKeyOf,
  readAllTables,
  repeating,
  withPassword,
} from './support/observe-canaries.ts'

beforeAll(buildPackage)

const OBSERVE = fileURLToPath(new URL('support/observe.mjs', import.meta.url))

it('a secret in any place appears in no log line, row, metric, error or answer of a command', async () => {
  const game = await openObserving('')
  const canaries = hatchCanaries(game.url)
  const receivers = await openReceivers(canaries)
  const env = { ...receivers.env, DATABASE_URL: withPassword(game.url, canaries.database) }
  const surroundings = { cwd: game.folder, env }
  const broken = brokenRules(canaries)
  await game.sql.query(
    `insert into aftercommit.push_subscriptions (endpoint_hash, user_id, endpoint, p256dh, auth)
     values ('1', 'ada', $1, $2, 'AAAAAAAAAAAAAAAAAAAAAA')`,
    [`${receivers.push}/push/1`, publicKeyOf(canaries.vapid)],
  )
  const told: Record<string, string> = {}
  /** Everything has failed as often as it may; one waits for its next attempt. */
  const failed = (lamps: number, mails = 0) =>
    eventually(async () => {
      const dead = deadPerLamp(receivers) * lamps + mails
      return (await game.letters()).length === dead && (await game.deliveries()) === lamps
    })

  // The service, which is given wrong files and loses its connections.
  game.write(canaryRules(receivers, canaries, 'SMTP_URL'))
  const service = startCli(['start', '--verbose', '--json'], surroundings)
  await service.waitForLine('"ready":true')
  await light(game.sql, 'lamp.lit', 'first')
  await failed(1)
  await dropSessions(game.sql)
  for (const [name, rules] of Object.entries(broken)) {
    game.write(rules)
    service.kill('SIGHUP')
    const refusals = () => service.lines.filter((line) => line.includes('BAD_CONFIG')).length
    const before = refusals()
    await eventually(() => refusals() > before)
    await tell(told, CHECKING, surroundings, ` of ${name}`)
  }
  service.kill('SIGTERM')
  expect(await service.exited).toMatchObject({ code: 0 })
  told.start = service.lines.join('\n')

  // A program, with a mail server that refuses its password and then is not there.
  game.write(canaryRules(receivers, canaries, 'LOCKED_SMTP_URL'))
  const program = spawnScript(OBSERVE, [join(game.folder, 'aftercommit.toml')], env)
  await program.waitForLine('started')
  await light(game.sql, 'lamp.lit', 'second')
  await failed(2)
  for (const [name, rules] of Object.entries(broken)) {
    game.write(rules, `${name}.toml`)
    program.send(join(game.folder, `${name}.toml`))
    await program.waitForLine(`refused ${name}`)
  }
  game.write(canaryRules(receivers, canaries, 'DEAD_SMTP_URL'))
  program.send(join(game.folder, 'aftercommit.toml'))
  await program.waitForLine('loaded aftercommit')
  await light(game.sql, 'lamp.mailed', 'third')
  await failed(2, 1)
  program.send('report')
  await program.waitForLine('reported')
  told.program = program.lines.join('\n')

  const { rows: letters } = await game.sql.query(`select id from aftercommit.letters where event_id = 'second'`)
  const { rows: kept } = await game.sql.query('select id from aftercommit.deliveries')
  const pages = [
    ...letters.map(({ id }) => `dlq show ${id} --json`),
    ...kept.map(({ id }) => `deliveries show ${id} --json`),
  ]
  await tell(told, [...LOOKING, ...pages], surroundings)
  const nowhere = `postgres://app:${canaries.database}@127.0.0.1:${await closedPort()}/shop`
  const lost = { ...surroundings, env: { ...env, DATABASE_URL: nowhere } }
  await tell(told, ['status', 'doctor --verbose'], lost, ' without a database')
  const waiting = startCli(['start', '--verbose'], lost)
  await waiting.waitForLine('ECONNREFUSED')
  told['start without a database'] = waiting.lines.join('\n')
  Object.assign(told, await readAllTables(game.sql))

  expect(findCanaries(told, canaries)).toEqual([])

  // The search looked at what it was meant to look at, and the secrets were in use.
  for (const place of ['start', 'program', 'dlq export --json', 'observers list --json', 'table letters'])
    expect(told[place], place).toContain('quoting')
  expect(told['deliveries list --json']).toContain('later/webhook')
  expect(told['events explain second --json']).toContain('***')
  const calls = receivers.calls()
  for (const name of ['bearer', 'apiKey', 'path', 'query', 'code', 'slack'] as const)
    expect(calls).toContain(canaries[name])
  expect(calls).toContain(Buffer.from(`AC1:${canaries.sms}`).toString('base64'))
  expect(calls).toContain('vapid t=')
  expect(receivers.passwords()).toContain(canaries.smtp)
  expect(receivers.passwords()).toContain(canaries.wrongSmtp)
})

const CHECKING = ['config check', 'config show', 'observers validate', 'observers validate --json', 'observers list']
const LOOKING = [
  ...['status --json', 'doctor --json', 'config show', 'config show --json', 'observers list', 'observers list --json'],
  ...['deliveries list --json', 'deliveries destinations --json', 'dlq list', 'dlq list --json', 'dlq export --json'],
  ...['events list --json', 'events show first --json', 'events explain first', 'events explain second --json'],
  ...['observers test --since 1h', 'observers test --since 1h --json', 'subscriptions list --json'],
]

/** Keeps what commands print, two at a time. */
async function tell(told: Record<string, string>, commands: readonly string[], options: CliOptions, about = '') {
  const left = [...commands]
  const run = async () => {
    for (let command = left.shift(); command !== undefined; command = left.shift()) {
      const { stdout, stderr } = await runCli(command.split(' '), options)
      told[command + about] = `${stdout}\n${stderr}`
    }
  }
  await Promise.all([run(), run()])
}

/** What they say about a call they do not like, each in its own way. */
async function openReceivers(canaries: Canaries) {
  const answering = {
    naming: await httpReceiver(repeating(({ headers }) => JSON.stringify(headers))),
    quoting: await httpReceiver(repeating(({ headers }) => `unknown token ${String(headers.authorization).slice(7)}`)),
    pointing: await httpReceiver(repeating(({ path }) => `there is nothing at ${path}`)),
    listing: await httpReceiver(repeating(({ path }) => path.split(/[/?&=]/).join(' and '))),
    silent: await httpReceiver(() => {}),
  }
  const later = await httpReceiver(repeating(({ headers }) => JSON.stringify(headers)))
  const push = await httpReceiver(repeating(({ headers }) => JSON.stringify(headers)))
  const sms = await httpReceiver(repeating(({ headers, body }) => `${JSON.stringify(headers)} ${body}`))
  const slack = await httpReceiver(repeating(({ path }) => `no_service ${path} ${path.split('/').at(-1)}`))
  const passwords: string[] = []
  const smtp = await smtpReceiver({
    user: 'shop',
    password: canaries.smtp,
    onPassword: (password) => void passwords.push(password),
    recipient: (address) => [550, `${address} is not known here, shop:${canaries.smtp}`],
  })
  const urls = Object.entries(answering).map(([name, { url }]) => [name, url])
  return {
    hooks: Object.fromEntries([...urls, ['closed', `http://127.0.0.1:${await closedPort()}`]]),
    later: later.url,
    push: push.url,
    calls: () => JSON.stringify([later, slack, sms, push, ...Object.values(answering)].map(({ calls }) => calls)),
    passwords: () => passwords,
    env: {
      SLACK_URL: `${slack.url}/services/T0001/B0002/${canaries.slack}`,
      SMS_URL: sms.url,
      SMS_TOKEN: canaries.sms,
      VAPID_PUBLIC: publicKeyOf(canaries.vapid),
      VAPID_PRIVATE: canaries.vapid,
      SMTP_URL: smtp.url,
      LOCKED_SMTP_URL: smtp.url.replace(canaries.smtp, canaries.wrongSmtp),
      DEAD_SMTP_URL: `smtp://shop:${canaries.smtp}@127.0.0.1:${await closedPort()}`,
      SIGNING: `whsec_${Buffer.from(canaries.signing).toString('base64')}`,
      BEARER: canaries.bearer,
      API_KEY: canaries.apiKey,
      LISTED: canaries.listed,
    },
  }
}

async function light(sql: pg.Client, type: string, id: string): Promise<void> {
  await sql.query(`select aftercommit.emit($1, 'lamp', '1', '{}', id => $2)`, [type, id])
}

async function dropSessions(sql: pg.Client): Promise<void> {
  await sql.query(
    `select pg_terminate_backend(pid)
       from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  )
}
