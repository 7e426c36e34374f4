/** A Redis on loopback for as long as `use` takes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { createClient } from '@redis/client'

export async function withRedis(use) {
  const port = await freePort()
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''])
  const url = `redis://127.0.0.1:${port}`
  try {
    await ready(server)
    const client = await createClient({ url, RESP: 2 }).connect()
    return await use({ url, client }).finally(() => client.destroy())
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

async function ready(server) {
  for await (const line of createInterface({ input: server.stdout })) if (line.includes('Ready to accept')) return
  throw new Error('redis-server ended before it was ready')
}

function freePort() {
  return new Promise((resolve) => {
    const listener = createServer().listen(0, '127.0.0.1', () => {
      const { port } = listener.address()
      listener.close(() => resolve(port))
    })
  })
}
