/** Who sends: a bearer token before anything is read, a signature before anything is understood, then whose events they are. */
import { AftercommitError } from '../errors.ts'
import { checkTenant } from '../events/index.ts'
import type { Clock } from '../runtime/index.ts'
import { verifyWebhook } from '../webhook-signature.ts'
import type { InboundSettings } from './inbound-options.ts'
import { Refusal } from './inbound-problem.ts'

export interface Sender {
  readonly user: string | undefined
  readonly tenant: string | undefined
}

/** The principal; null where no token is asked for. */
export async function checkToken(request: Request, { checkToken: check }: InboundSettings): Promise<unknown> {
  if (check === undefined) return null
  const token = /^bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  const principal = token === undefined ? null : await orLater(async () => check(token, request))
  if (principal === null || principal === undefined) throw unauthorized()
  return principal
}

export function checkSignature(headers: Headers, body: Uint8Array, settings: InboundSettings, clock: Clock): void {
  const { secrets, tolerance } = settings
  if (secrets.length === 0) return
  try {
    verifyWebhook(secrets, headers, body, { tolerance, now: clock.now() })
  } catch {
    throw unauthorized()
  }
}

export async function identify(principal: unknown, { identity }: InboundSettings): Promise<Sender> {
  const found = await orLater(async () => identity(principal))
  if (found === null) throw unauthorized()
  const user = found.user ?? undefined
  const tenant = found.tenant ?? undefined
  if (tenant !== undefined) checkTenant(tenant)
  if (user !== undefined && (typeof user !== 'string' || user === '')) {
    throw new AftercommitError('BAD_OPTION', '`identity` of an inbound endpoint gave a user that is not text.')
  }
  return { user, tenant }
}

/** One answer for every reason: which part was wrong is nobody's business. */
function unauthorized(): Refusal {
  return new Refusal(401, 'This request is not from anybody who may publish here.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** A check that fails is no answer: the sender is neither let in nor told to give up. */
async function orLater<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    throw new Refusal(503, 'It could not be found out who you are. Send the events again.', {
      headers: { 'retry-after': '5' },
      cause,
    })
  }
}
