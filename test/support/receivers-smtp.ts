/** A mail server for tests: real SMTP, keeps every mail with its envelope, and refuses what the script says. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { onTestFinished } from 'vitest'

export interface ReceivedMail {
  readonly from: string
  readonly to: string[]
  readonly raw: string
}

export interface SmtpReceiver {
  readonly url: string
  readonly mails: ReceivedMail[]
  readonly connections: number
}

export interface SmtpScript {
  /** A status and a text to refuse a recipient with. */
  recipient?(address: string, number: number): [number, string] | undefined
  /** After the final dot; `'cut'` ends the connection without an answer. */
  mail?(number: number): [number, string] | 'cut' | undefined
  readonly user?: string
  readonly password?: string
  /** What somebody tried to log in with. */
  onPassword?(password: string): void
}

export async function smtpReceiver(script: SmtpScript = {}): Promise<SmtpReceiver> {
  const mails: ReceivedMail[] = []
  let connections = 0
  let recipients = 0
  const server = new SMTPServer({
    authOptional: script.user === undefined,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onConnect(_, done) {
      connections++
      done()
    },
    onAuth({ username, password }, _, done) {
      script.onPassword?.(password ?? '')
      if (username === script.user && password === script.password) done(null, { user: username })
      else done(refusal([535, 'bad credentials']))
    },
    onRcptTo({ address }, _, done) {
      const refused = script.recipient?.(address, ++recipients)
      done(refused && refusal(refused))
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        mails.push({ from, to: rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks).toString() })
        const verdict = script.mail?.(mails.length)
        if (verdict === 'cut') for (const connection of server.connections) connection.close()
        else done(verdict && refusal(verdict))
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://${script.user === undefined ? '' : `${script.user}:${script.password}@`}127.0.0.1:${port}`,
    mails,
    get connections() {
      return connections
    },
  }
}

function refusal([status, text]: [number, string]): Error {
  return Object.assign(new Error(text), { responseCode: status })
}
