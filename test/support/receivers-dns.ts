/** A name server for tests: answers A and AAAA from a script, with a lifetime of 0, or not at all. */
import { createSocket } from 'node:dgram'
import { onTestFinished } from 'vitest'

export interface DnsReceiver {
  /** For `dns: { servers: [server] }`. */
  readonly server: string
  /** Names that were asked for, in order; `A name` or `AAAA name`. */
  readonly questions: string[]
}

/** Addresses for a name: none means that it does not exist, `'silent'` that no answer is sent. */
export type DnsScript = (name: string, times: number) => readonly string[] | 'silent'

export async function dnsReceiver(script: DnsScript): Promise<DnsReceiver> {
  const socket = createSocket('udp4')
  const questions: string[] = []
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query)
    const kind = type === 28 ? 'AAAA' : 'A'
    questions.push(`${kind} ${name}`)
    const times = questions.filter((asked) => asked === `${kind} ${name}`).length
    const answer = script(name, times)
    if (answer === 'silent') return
    const wanted = answer.filter((address) => address.includes(':') === (kind === 'AAAA'))
    socket.send(writeAnswer(query, end, type, wanted, answer.length === 0), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => socket.close(() => resolve())))
  return { server: `127.0.0.1:${socket.address().port}`, questions }
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.subarray(at + 1, at + 1 + length).toString())
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function writeAnswer(query: Buffer, end: number, type: number, addresses: readonly string[], unknown: boolean): Buffer {
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | (unknown ? 3 : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  const records = addresses.map((address) => {
    const data = address.includes(':') ? bytesOfV6(address) : Buffer.from(address.split('.').map(Number))
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt16BE(data.length, 10)
    return Buffer.concat([record, data])
  })
  return Buffer.concat([header, query.subarray(12, end), ...records])
}

function bytesOfV6(address: string): Buffer {
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const middle = Array.from({ length: 8 - groups(head).length - groups(tail).length }, () => '0')
  return Buffer.from(
    [...groups(head), ...middle, ...groups(tail)].map((group) => group.padStart(4, '0')).join(''),
    'hex',
  )
}
