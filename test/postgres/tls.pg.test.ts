import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
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

function selfSigned(): { key: Buffer; cert: Buffer } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'ac-tls-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const { status } = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'],
      ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    ])
    return status === 0 ? { key: readFileSync(key), cert: readFileSync(cert) } : undefined
  } finally {
    rmSync(folder, { recursive: true })
  }
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

  const certificate = selfSigned()
  if (!certificate) console.warn('openssl is not installed: a forged certificate is NOT tested in this run')

  test.skipIf(!certificate)('is not made with a certificate that nobody vouches for', async () => {
    const decrypted: Buffer[] = []
    const { port } = await startMiddleman((socket) => {
      socket.write('S')
      const tls = new TLSSocket(socket, { isServer: true, ...certificate! })
      tls.on('error', () => {})
      tls.on('data', (chunk) => decrypted.push(chunk))
    })
    const refused = open(port).query('select 1')
    await expect(refused).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
    await expect(refused).rejects.toThrow(/self-signed certificate/)
    expect(Buffer.concat(decrypted)).toHaveLength(0)
  })
})
