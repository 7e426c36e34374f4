import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { selfSigned } from '../support/certificate.ts'
import { openDatabase } from '../support/database.ts'

/** Sits in the middle and answers the request for encryption; records whatever a client was willing to tell it. */
async function startMiddleman(answer: (socket: Socket) => void): Promise<{ port: number; told: Buffer[] }> {
  const told: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      answer(socket)
      socket.on('data', (chunk) => told.push(chunk))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as { port: number }).port, told }
}

describe('a connection that must be encrypted', () => {
  const open = (port: number) =>
    openDatabase({
      database: `postgres://ann:hunter2@127.0.0.1:${port}/x?sslmode=verify-full`,
      connectTimeoutMs: 30_000,
    })

  test('is not made without encryption when the other side declines', async () => {
    const { port, told } = await startMiddleman((socket) => socket.write('N'))
    await expect(open(port).query('select 1')).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
    expect(Buffer.concat(told)).toHaveLength(0)
  })

  test('is not made with a certificate that nobody vouches for', async () => {
    const certificate = selfSigned({ ip: '127.0.0.1' })
    const decrypted: Buffer[] = []
    const { port } = await startMiddleman((socket) => {
      socket.write('S')
      const tls = new TLSSocket(socket, { isServer: true, ...certificate })
      tls.on('error', () => {})
      tls.on('data', (chunk) => decrypted.push(chunk))
    })
    const refused = open(port).query('select 1')
    await expect(refused).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
    await expect(refused).rejects.toThrow(/self-signed certificate/)
    expect(Buffer.concat(decrypted)).toHaveLength(0)
  })
})
