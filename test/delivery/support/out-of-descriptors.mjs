// A program that has no file descriptor left when its webhooks are due, and has them again when it is told so on stdin.
// Usage: out-of-descriptors.mjs <database> <file with rules>. Prints its log lines, and `ready` and `exhausted`.
import { closeSync, openSync } from 'node:fs'
import { createAftercommit } from '../../../lib/index.js'

const [database, file] = process.argv.slice(2)
const write = (level) => (fields, message) => console.log(`${level} ${message} ${fields.err?.message ?? ''}`)
const logger = { debug() {}, info() {}, warn: write('warn'), error: write('error'), child: () => logger }
const ac = createAftercommit({ database, logger })
const taken = []

await ac.observers.loadFile(file)
await ac.start()
// Everything that a webhook needs is loaded by the first one, and its connection is closed by the receiver.
await ac.emitNow('lamp.lit', { id: 'first', payload: {} })
console.log('ready')
process.stdin.on('data', async (text) => {
  if (String(text).includes('free')) for (const descriptor of taken.splice(0)) closeSync(descriptor)
  if (String(text).includes('exhaust')) {
    try {
      for (;;) taken.push(openSync('/dev/null'))
    } catch {}
    console.log('exhausted')
    await ac.emitNow(Array.from({ length: 20 }, (_, n) => ({ type: 'lamp.lit', id: `late-${n}`, payload: {} })))
  }
  if (String(text).includes('stop')) await ac.stop().then(() => process.exit(0))
})
