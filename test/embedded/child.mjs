// One process that uses an embedded Postgres, told what to do over stdin and reporting over stdout, a JSON line each.
// Usage: node child.mjs <built index.js> <options as JSON>
import { createInterface } from 'node:readline'

const [entry, options] = process.argv.slice(2)
const { startEmbedded } = await import(entry)
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

// "umask" and "leave" are for this program; the rest goes to startEmbedded.
const { umask, leave, ...rest } = JSON.parse(options)
if (umask !== undefined) process.umask(umask)

try {
  const server = await startEmbedded({ ...rest, onProgress: (step, detail) => say({ event: step, detail }) })
  const { url, host, port, version, dataDir, adopted, pid } = server
  say({ event: 'up', url, host, port, version, dataDir, adopted, pid })
  // Without stdin nothing but the server could keep this process alive.
  if (!leave) {
    for await (const line of createInterface({ input: process.stdin })) {
      if (line !== 'stop') continue
      await server.stop()
      say({ event: 'stopped' })
      break
    }
    process.stdin.destroy()
  }
} catch (error) {
  say({ event: 'failed', code: error.code, message: error.message })
}
