/**
 * Mail over SMTP, through connections that are kept and shared. nodemailer is loaded with the first mail. Its own
 * queueing and repeating are turned off: mails wait here, where waiting can be given up, and a repetition is an attempt
 * like any other. The ends of a mail, failures first:
 *
 * - the server refuses it (5xx): permanent; for now (4xx): transient
 * - some recipients are refused: counts as refused; another attempt, if there is one, reaches the others twice
 * - no connection, or it breaks before the final answer: transient. The server may have the mail; the Message-ID of the
 *   next attempt is the same
 * - no end in sight after a minute, though single replies keep coming: the connections are ended, transient
 */
import type SMTPPool from 'nodemailer/lib/smtp-pool'
import { type Clock, withTimeout } from '../../runtime/index.ts'
import type { Mail, Mailer } from '../action.ts'
import { createGate, isLocalFault, NAME_SERVER_AWAY, untilAborted } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { localReason } from './call-http.ts'

export interface ClosableMailer extends Mailer {
  close(): void
}

export interface MailerOptions {
  /** `smtp://user:password@host:587`, or `smtps://` for TLS from the first byte. */
  readonly url: string
  readonly clock: Clock
  readonly timeoutMs?: number
}

const CONNECTIONS = 5

interface Transport {
  send(mail: Mail): Promise<SentInfo>
  end(): void
}

interface SentInfo {
  readonly accepted: number
  readonly refusals: readonly number[]
}

export function createMailer({ url, clock, timeoutMs = 60_000 }: MailerOptions): ClosableMailer {
  const gate = createGate(CONNECTIONS)
  let opening: Promise<Transport> | undefined
  let closed = false

  function discard(): void {
    const ended = opening
    opening = undefined
    ended?.then((transport) => transport.end()).catch(() => undefined)
  }

  async function deliver(mail: Mail): Promise<SentInfo> {
    opening ??= openTransport(url)
    const sending = opening.then((transport) => transport.send(mail))
    try {
      return await withTimeout(sending, timeoutMs, clock, 'The mail was not taken')
    } catch (error) {
      if (codeOf(error) === 'TIMED_OUT') discard()
      throw toObserverError(error)
    }
  }

  return {
    async send(mail, signal) {
      if (closed) throw new ObserverError('OB007', 'Mail is not sent any more: it was stopped.', { transient: true })
      const leave = await gate.enter(signal)
      const { accepted, refusals } = await untilAborted(deliver(mail).finally(leave), signal)
      if (refusals.length > 0) throw refused(accepted, refusals)
      return { accepted }
    },
    close() {
      closed = true
      discard()
    },
  }
}

async function openTransport(url: string): Promise<Transport> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: CONNECTIONS,
    maxRequeues: 0,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    async send(mail) {
      const info = await transport.sendMail({
        ...mail,
        to: [...mail.to],
        // Said outright, so that nothing in a header can add a recipient.
        envelope: { from: mail.from.address, to: mail.to.map(({ address }) => address) },
      })
      return { accepted: info.accepted?.length ?? 0, refusals: (info.rejectedErrors ?? []).map(statusOf) }
    },
    end: () => (transport.transporter as SMTPPool).close({ force: true }),
  }
}

function refused(accepted: number, refusals: readonly number[]): ObserverError {
  const transient = refusals.some((status) => status < 500)
  return new ObserverError(
    'OB007',
    `The mail server refused ${refusals.length} of ${accepted + refusals.length} recipients (${refusals.join(', ')}); ` +
      `the others have the mail. ${transient ? 'It is tried again as configured.' : 'It is not tried again.'}`,
    { transient, status: refusals[0] },
  )
}

/** The server's text repeats addresses, so only its number and nodemailer's word are told. */
function toObserverError(error: unknown): ObserverError {
  const status = statusOf(error)
  const code = codeOf(error)
  const certificate = certificateProblem(error)
  if (certificate !== undefined) {
    return new ObserverError(
      'OB007',
      `The certificate of the mail server is not trusted (${certificate}), so nothing was sent to it. Give the server a ` +
        'certificate for the host in [providers.smtp], or name its authority in NODE_EXTRA_CA_CERTS. It is tried again as configured.',
      { transient: true },
    )
  }
  const local = localCode(error)
  if (local !== undefined) {
    return new ObserverError(
      'OB007',
      `The mail was not sent: ${localReason(local)} It is made again, and does not count.`,
      {
        ...{ transient: true, local: true },
      },
    )
  }
  if (status === 0) {
    const transient = !UNSENDABLE.has(code)
    const advice = transient ? 'It is tried again as configured.' : 'It is not tried again.'
    return new ObserverError('OB007', `The mail was not taken by the mail server (${code}). ${advice}`, { transient })
  }
  const transient = status < 500
  const advice = transient
    ? 'It is tried again as configured.'
    : 'It is not tried again. Check the address and [providers.smtp], then redrive the dead letter.'
  return new ObserverError('OB007', `The mail server refused the mail with ${status} (${code}). ${advice}`, {
    transient,
    status,
  })
}

/** nodemailer's words for a mail that cannot be sent as it is. */
const UNSENDABLE: ReadonlySet<string> = new Set(['EENVELOPE', 'EMESSAGE', 'ESTREAM', 'ECONFIG'])

/** The code of a fault of this host, which nodemailer replaces by EDNS, ECONNECTION or ESOCKET. */
function localCode(error: unknown): string | undefined {
  const { originalCode } = (error ?? {}) as { originalCode?: unknown }
  if (typeof originalCode !== 'string') return undefined
  // The system says this when no name server answered.
  if (originalCode === 'EAI_AGAIN') return NAME_SERVER_AWAY
  return isLocalFault(originalCode) ? originalCode : undefined
}

/** The word of OpenSSL or Node for a certificate that was refused, which nodemailer replaces by ESOCKET. */
function certificateProblem(error: unknown): string | undefined {
  const { originalCode } = (error ?? {}) as { originalCode?: unknown }
  return typeof originalCode === 'string' && CERTIFICATE.test(originalCode) ? originalCode : undefined
}

const CERTIFICATE =
  /^(CERT_[A-Z_]{1,60}|UNABLE_TO_[A-Z_]{1,60}|[A-Z_]{0,20}SELF_SIGNED_CERT[A-Z_]{0,20}|ERR_TLS_CERT_[A-Z_]{1,40})$/

function statusOf(error: unknown): number {
  const { responseCode } = (error ?? {}) as { responseCode?: unknown }
  return typeof responseCode === 'number' && responseCode >= 400 ? responseCode : 0
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'UNKNOWN'
}
