/** What the actions of one loaded configuration share, and its end: connections are made with the first use. */
import type { CacheActions } from '../../cache/index.ts'
import { type RedisSettings, reveal } from '../../configuration/index.ts'
import { defaultSource } from '../../events/index.ts'
import type { Pool } from '../../postgres/index.ts'
import type { Clock, Logger, Telemetry } from '../../runtime/index.ts'
import type { DocumentWriter } from '../../search/index.ts'
import type { ActionContext, CustomHandler, EmailTemplate, Providers, TemplateCompiler } from '../action.ts'
import { createHttp, type HttpOptions, parseRules } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { openSharedCache } from './cache-shared.ts'
import { checkProviders } from './check-providers.ts'
import { createMailer } from './mailer.ts'
import { createMistakes } from './mistakes.ts'

export interface ActionContextOptions {
  readonly templates: TemplateCompiler
  readonly providers: Providers
  readonly emailTemplates?: Readonly<Record<string, EmailTemplate>>
  /** `[network] allow` */
  readonly allow?: readonly string[]
  readonly handlers: ReadonlyMap<string, CustomHandler>
  readonly database: Pick<Pool, 'transaction'>
  /** Where nothing runs, nothing is written. */
  readonly documents?: DocumentWriter
  /** `[redis]` */
  readonly redis?: RedisSettings | null
  readonly cache?: CacheActions
  readonly logger: Logger
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  readonly clock: Clock
  /** The schema of the log: it names the `source` of CloudEvents and the keys of a shared cache. */
  readonly schema: string
  /** Name servers, certificate authority and limits other than the usual. */
  readonly http?: Pick<HttpOptions, 'dns' | 'ca' | 'limits'>
}

export interface ClosableActionContext extends ActionContext {
  /** Ends connections and what is under way on them. May be called twice. */
  close(): Promise<void>
}

export function createActionContext(options: ActionContextOptions): ClosableActionContext {
  const { templates, providers, emailTemplates = {}, allow = [], handlers, database, logger, clock, schema } = options
  const { http = {}, documents = NOWHERE, redis = null, cache = null, tracing } = options
  checkProviders(providers)
  const network = parseRules(allow)
  const guarded = createHttp({ ...http, rules: network, clock })
  const unguarded = createHttp({ ...http, rules: null, clock })
  const sharedCache = redis?.enabled ? openSharedCache(redis, schema, clock) : null
  const mailer = providers.smtp === undefined ? null : createMailer({ url: smtpUrl(providers.smtp.url), clock })
  return {
    ...{ templates, providers, emailTemplates, network, guarded, unguarded, mailer },
    ...{
      handlers,
      database,
      documents,
      sharedCache,
      cache,
      logger,
      clock,
      tracing,
      source: defaultSource(schema),
      createMistakes,
    },
    async close() {
      mailer?.close()
      sharedCache?.store.close()
      await Promise.all([guarded.close(), unguarded.close()])
    },
  }
}

/** For who checks a file and runs nothing. */
const NOWHERE: DocumentWriter = {
  write: () => Promise.reject(new Error('There is no database to write documents to.')),
  checkLanguage: () => Promise.reject(new Error('There is no database to ask for its languages.')),
}

function smtpUrl(secret: NonNullable<Providers['smtp']>['url']): string {
  const url = reveal(secret)
  if (URL.canParse(url) && /^smtps?:$/.test(new URL(url).protocol)) return url
  throw new ObserverError(
    'OB012',
    'url of [providers.smtp] is not an address such as "smtp://user:password@mail.example.com:587". Nothing was loaded.',
    { path: ['providers', 'smtp', 'url'] },
  )
}
