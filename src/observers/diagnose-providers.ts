/** Whether the services of `[providers]` can be reached. Nothing is sent to anybody: accounts and front doors are asked. */
import type { ProviderSettings, Settings } from '../configuration/index.ts'
import { type Finding, ok, type Queryable, SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { type ServiceRow, selectServices } from '../push/index.ts'
import type { Clock } from '../runtime/index.ts'
import { createSmsApi, diagnoseRedis, diagnoseSearch } from './actions/index.ts'
import { CallFailed, createHttp, type Http, type HttpRequest, parseRules, RefusedAddress } from './network/index.ts'

const TIMEOUT_MS = 5_000
/** Few browsers go by a service of their own; ten cover nearly everybody. */
const MOST_SERVICES = 10

export async function diagnoseProviders(
  { providers, network, redis }: Pick<Settings, 'providers' | 'network' | 'redis'>,
  db: Queryable,
  clock: Clock,
): Promise<Finding[]> {
  const [unguarded, guarded] = [null, parseRules(network.allow)].map((rules) => createHttp({ rules, clock }))
  try {
    const found = await Promise.all([
      providers.sms ? [await diagnoseSms(providers.sms, unguarded!)] : [],
      providers.push ? diagnosePush(db, guarded!) : [],
      redis?.enabled ? [await diagnoseRedis(redis, clock)] : [],
      providers.search ? diagnoseSearch(providers.search, { db, clock, unguarded: unguarded! }) : [],
    ])
    return found.flat()
  } finally {
    await Promise.all([unguarded!.close(), guarded!.close()])
  }
}

async function diagnoseSms(provider: NonNullable<ProviderSettings['sms']>, http: Http): Promise<Finding> {
  const { origin, account, headers } = createSmsApi(provider)
  const said = await ask(http, { target: account, headers })
  if (said === 200) return ok('sms', `${origin} knows the account`)
  const fix = 'Look at account, token and base_url of [providers.sms]'
  if (said === 401 || said === 403 || said === 404) {
    const message = `${origin} answered with ${said} when it was asked for the account, so messages will be refused.`
    return { level: 'problem', check: 'sms', message, fix }
  }
  return {
    level: 'warning',
    check: 'sms',
    message: `${origin} ${describe(said)} when it was asked for the account.`,
    fix,
  }
}

async function diagnosePush(db: Queryable, http: Http): Promise<Finding[]> {
  let services: ServiceRow[]
  try {
    services = await selectServices(db, MOST_SERVICES)
  } catch (error) {
    if (sqlstateOf(error) !== SQLSTATE.insufficientPrivilege) throw error
    const message = 'This role may not look at push subscriptions, so they were not looked at.'
    return [{ level: 'note', check: 'push', message, fix: 'As the owner: aftercommit migrate --grant-run <role>' }]
  }
  if (services.length === 0) return [ok('push', 'nobody has registered a device yet')]
  return Promise.all(
    services.map(async ({ origin, devices }): Promise<Finding> => {
      const said = await ask(http, { target: { origin, path: '/' }, headers: ['user-agent', 'aftercommit'] })
      // Whatever it answers to a stranger at its front door: it is there.
      if (typeof said === 'number') return ok('push', `${origin} answers; ${devices} devices`)
      const message = `${origin} ${describe(said)}; ${devices} devices get their messages from there.`
      return { level: 'warning', check: 'push', message, fix: 'Let this machine call it, or see [network] allow' }
    }),
  )
}

/** A status, or why there is none. */
async function ask(http: Http, request: Pick<HttpRequest, 'target' | 'headers'>): Promise<number | string> {
  const { signal } = new AbortController()
  try {
    return (await http.send({ method: 'GET', body: null, timeoutMs: TIMEOUT_MS, signal, ...request })).status
  } catch (error) {
    if (error instanceof RefusedAddress) return `may not be called, because ${error.message}`
    if (error instanceof CallFailed) return `did not answer (${error.code})`
    throw error
  }
}

function describe(said: number | string): string {
  return typeof said === 'number' ? `answered with ${said}` : said
}
