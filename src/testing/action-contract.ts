/**
 * What every action type promises to observers, as tests that any of them can run: ours do, and those of packages should.
 * They adapt to what they are given: without a receiver that can be told to fail or to hang, that is not played.
 */
import { inspect } from 'node:util'
import type { SettingsInput } from '../configuration/index.ts'
import { toErrorRecord } from '../dead-letters/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { ActionRequest, ActionType, CustomHandler, PreparedAction } from '../observers/index.ts'
import { type Database, schemaName } from '../postgres/index.ts'
import { type Logger, silentLogger, summarizeError, systemClock } from '../runtime/index.ts'
import type { TestFramework } from './subscriptions-contract.ts'
import { testEvent } from './test-event.ts'

/** Who calls: one scenario, from `create` to `stop`. The receiver has got nothing yet. */
export interface ActionUnderTest {
  readonly type: ActionType
  /** Keys that are right, as in the file; what comes from the environment there is `{ reveal: () => 'secret' }` here. */
  readonly config: Readonly<Record<string, unknown>>
  /** The event it acts on. */
  readonly event?: AnyEvent
  /** Keys of the right form with more than one mistake that only `prepare` can find, and the key of each. */
  readonly wrong?: { readonly config: Readonly<Record<string, unknown>>; readonly keys: readonly string[] }
  /** What else the file says: `[providers]`, `[network] allow`. */
  readonly settings?: SettingsInput
  readonly database?: Pick<Database, 'transaction'>
  readonly handlers?: ReadonlyMap<string, CustomHandler>
  readonly logger?: Logger
  /** What must be seen nowhere but at the receiver. */
  readonly secrets?: readonly string[]
  /** Every call that the receiver has got, as text. */
  received(): readonly string[] | Promise<readonly string[]>
  /** True: the receiver is told the idempotency key, so `received` shows it. */
  readonly sendsKey: boolean
  /** From now on the receiver says no, and repeats what it was sent. */
  fail?(): void | Promise<void>
  /** From now on the receiver takes calls and does not answer. */
  hang?(): void | Promise<void>
  stop(): Promise<void>
}

export function describeActionType(
  name: string,
  create: () => Promise<ActionUnderTest>,
  { describe, it, expect }: TestFramework,
): void {
  describe(name, () => {
    for (const [title, play] of SCENARIOS) {
      it(title, async () => {
        const under = await create()
        const stage = await setStage(under)
        try {
          await play({ ...stage, under, expect })
        } finally {
          await stage.close()
          await under.stop()
        }
      })
    }
  })
}

interface Stage {
  readonly under: ActionUnderTest
  readonly expect: TestFramework['expect']
  /** As the loader does it: checks the keys, then prepares. */
  prepare(config?: Readonly<Record<string, unknown>>): PreparedAction
  request(more?: Partial<ActionRequest>): ActionRequest
}

type Play = (stage: Stage) => Promise<void>

const SCENARIOS: readonly (readonly [title: string, play: Play])[] = [
  [
    'says what it is called and how patient it is',
    async ({ under: { type }, expect }) => {
      expect(/^[a-z][a-z0-9_-]{0,62}$/.test(type.type)).toEqual(true)
      expect(type.defaultRetry === 'service' || type.defaultRetry === 'local').toEqual(true)
    },
  ],
  [
    'takes its keys and refuses others',
    async ({ under: { type, config }, expect }) => {
      expect(type.schema.safeParse(config).success).toEqual(true)
      expect(type.schema.safeParse({ ...config, no_such_key: 1 }).success).toEqual(false)
    },
  ],
  [
    'tells every mistake at once, by its key',
    async ({ under: { wrong }, prepare, expect }) => {
      if (wrong === undefined) return
      const { mistakes = [] } = failureOf(() => prepare(wrong.config)) as { mistakes?: { path: readonly unknown[] }[] }
      expect(mistakes.map(({ path }) => path[0])).toEqual(wrong.keys)
    },
  ],
  [
    'shows what it would do without doing it, and without a secret',
    async ({ under, prepare, request, expect }) => {
      const { actionType, destination, content } = prepare().preview(request())
      expect(actionType).toEqual(under.type.type)
      expect(destination === null || typeof destination === 'string').toEqual(true)
      expect(typeof content).toEqual('object')
      expect(findSecrets(under, { destination, content })).toEqual([])
      expect(await under.received()).toEqual([])
    },
  ],
  [
    'does it once, and says so in a result without a secret',
    async ({ under, prepare, request, expect }) => {
      const result = await prepare().run(request())
      expect((await under.received()).length).toEqual(1)
      const { actionType, success, message, durationMs } = result
      expect({ actionType, success }).toEqual({ actionType: under.type.type, success: true })
      expect(typeof message === 'string' && message !== '' && durationMs >= 0).toEqual(true)
      expect(findSecrets(under, result)).toEqual([])
    },
  ],
  [
    'tells the receiver the same key with every attempt, and another one for another event',
    async ({ under, prepare, request, expect }) => {
      if (!under.sendsKey) return
      const action = prepare()
      for (const attempt of [1, 2]) await action.run(request({ attempt }))
      await action.run(request({ idempotencyKey: OTHER_KEY }))
      const told = (await under.received()).map((call) => [KEY, OTHER_KEY].filter((key) => call.includes(key)))
      expect(told).toEqual([[KEY], [KEY], [OTHER_KEY]])
    },
  ],
  [
    'ends when its signal fires, and calls nobody when it has fired before',
    async ({ under, prepare, request, expect }) => {
      if (under.hang === undefined) return
      await under.hang()
      const action = prepare()
      const stopping = new AbortController()
      const running = outcomeOf(() => action.run(request({ signal: stopping.signal })))
      await until(async () => (await under.received()).length === 1)
      stopping.abort(new Error('stopping'))
      expect(await running).toEqual('rejected')
      const late = AbortSignal.abort(new Error('stopped'))
      expect(await outcomeOf(() => action.run(request({ signal: late })))).toEqual('rejected')
      expect((await under.received()).length).toEqual(1)
    },
  ],
  [
    'fails with an error that has a code and tells no secret',
    async ({ under, prepare, request, expect }) => {
      if (under.fail === undefined) return
      await under.fail()
      const error = await rejectionOf(() => prepare().run(request()))
      expect(/^OB0\d\d$/.test(String((error as { code?: unknown })?.code))).toEqual(true)
      expect(findSecrets(under, keptOf(error))).toEqual([])
    },
  ],
]

const KEY = 'contract-key-0123456789abcdefghi'
const OTHER_KEY = 'another-key-0123456789abcdefghij'

async function setStage(under: ActionUnderTest) {
  const [{ createPreparing }, { toSettings }, { scopeOf }] = await Promise.all([
    import('../observers/index.ts'),
    import('../configuration/index.ts'),
    import('../conditions/index.ts'),
  ])
  const { ports, takeContexts } = createPreparing({
    database: { transaction: NO_DATABASE, ...under.database, schemaName: schemaName('aftercommit') },
    ...{ clock: systemClock, definitions: undefined, env: {}, filters: {}, actionTypes: [] },
    logger: under.logger ?? silentLogger,
    handlers: under.handlers ?? new Map(),
  })
  const event = under.event ?? testEvent('contract.played', { id: 'contract-1', payload: {} })
  return {
    prepare: (config = under.config) => {
      const prepare = ports.prepare!(toSettings(under.settings ?? {}))
      return prepare(under.type, under.type.schema.parse(config), { env: [], events: undefined })
    },
    request: (more: Partial<ActionRequest> = {}): ActionRequest => ({
      ...{ event, observer: 'contract', action: under.type.type, attempt: 1, idempotencyKey: KEY },
      createdAt: event.recordedAt,
      signal: new AbortController().signal,
      scope: scopeOf(event),
      ...more,
    }),
    close: async () => void (await Promise.all(takeContexts().map((context) => context.close()))),
  }
}

const NO_DATABASE: Database['transaction'] = () =>
  Promise.reject(new Error('Give the contract a `database` for an action that needs one.'))

/** However it is written down: as JSON, or as a console shows it with all that is inside. */
function findSecrets({ secrets = [] }: ActionUnderTest, told: unknown): string[] {
  const text = `${JSON.stringify(told)}\n${inspect(told, { depth: 20, maxStringLength: null })}`
  return secrets.filter((secret) => text.includes(secret))
}

/** What dead letters, log lines and run records take of an error. */
function keptOf(error: unknown): unknown {
  const { detail } = error as { detail?: unknown }
  return [toErrorRecord(error, { storeStacks: true }), summarizeError(error, { stack: true }), detail]
}

function failureOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return {}
}

async function rejectionOf(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  return undefined
}

/** An action that does not end is told from one that does by a deadline no end needs. */
function outcomeOf(work: () => unknown): Promise<'done' | 'rejected' | 'endless'> {
  const deadline = new Promise<'endless'>((resolve) => void setTimeout(resolve, 10_000, 'endless').unref())
  const done = Promise.resolve()
    .then(work)
    .then(
      () => 'done' as const,
      () => 'rejected' as const,
    )
  return Promise.race([done, deadline])
}

async function until(look: () => Promise<boolean>): Promise<void> {
  for (let left = 500; left > 0; left--) {
    if (await look()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('The receiver was not called within 5 s.')
}
