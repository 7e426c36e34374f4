// A process of this build, beside which a test migrates the schema to a newer one. A process that `works` handles its own
// events. "migrate", "emit" and "health" on standard input each print one line of JSON.
import { createInterface } from 'node:readline'
import { createAftercommit } from '../../lib/index.js'

const [url, role] = process.argv.slice(2)
const logger = { debug() {}, info() {}, warn() {}, error: ({ code }) => say({ error: code }), child: () => logger }
const ac = createAftercommit({ database: url, logger })
if (role === 'works') {
  ac.subscribe({ id: 'counter', on: ['note.*'], from: 'start', handle: ({ id }) => say({ handled: id }) })
  await ac.start()
}
say({ ready: true })

const COMMANDS = {
  async migrate() {
    const { applied, placed } = await ac.migrate()
    return { applied, placed }
  },
  emit: () => ac.transaction(async (tx) => ({ id: (await tx.emit('note.written', { payload: {} })).id })),
  health: async () => ac.health(),
}

for await (const line of createInterface({ input: process.stdin })) {
  say({ [line]: await COMMANDS[line]().catch(({ code, message }) => ({ code, message })) })
}
await ac.stop()

function say(fact) {
  console.log(JSON.stringify(fact))
}
