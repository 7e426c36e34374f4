/** An observer with the production executor, first attempts, rows and worker; only what its actions do is simulated. */
import { createDelivering, type Delivering, type RunContext } from '../../src/delivery/index.ts'
import type { AnyEvent } from '../../src/log/index.ts'
import type { ActionRequest } from '../../src/observers/action.ts'
import type { ObserverConfig } from '../../src/observers/config/index.ts'
import { createExecutor, createRunningObserver, type Executor } from '../../src/observers/executor.ts'
import { LeaseKeeper } from '../../src/processes/index.ts'
import { createHealth, createRegistry, parseRetry, silentLogger } from '../../src/runtime/index.ts'
import type { Handlers } from './handlers.ts'
import { type Ledger, type LedgerCall, ownerOf } from './ledger.ts'
import type { Path } from './path.ts'
import type { Process } from './process.ts'

export interface SimulatedObserver {
  readonly delivering: Delivering
  /** Each observer is a worker, so each has a lease. */
  readonly processLease: LeaseKeeper
  readonly executor: Executor
  /** As the engine begins: another process may have read before. */
  begin(): Promise<void>
}

export interface ObserverParts {
  readonly process: Process
  readonly path: Path
  readonly ledger: Ledger
  readonly handlers: () => Handlers
  /** Of the owner in this process. */
  readonly termOf: () => number
}

const RETRY = parseRetry({ maxAttempts: 3, initialDelay: '100ms', maxDelay: '3s' }, 'retry')
const TIMEOUT_MS = 6_000

export function createObserver(parts: ObserverParts): SimulatedObserver {
  const { process, path, ledger, handlers, termOf } = parts
  const { clock } = process
  const { database } = path
  const ground = {
    ...{ database, clock, logger: silentLogger },
    metrics: createRegistry({ clock }),
    health: createHealth({ clock }),
  }
  const processLease = new LeaseKeeper({
    ...ground,
    info: { process: `${process.name}#${ledger.plan.id}`, host: 'simulated', pid: 1, version: '0', configHash: '0' },
    lock: () => process.lock,
  })
  const delivering = createDelivering({
    ...ground,
    process: process.name,
    processLease,
    willHear: () => process.lock.holds,
    storeStacks: false,
    concurrency: ledger.plan.places,
    drainMs: () => 5_000,
  })
  /** Begins the attempt that the production code is about to make. */
  let begin: ((event: AnyEvent, owner: string) => LedgerCall) | undefined
  const run = (owner: string) => (request: ActionRequest) => {
    if (process.isDead) return new Promise<never>(() => {})
    const call = begin!(request.event, owner)
    const called = handlers().call({ process, ledger, call, event: request.event, signal: () => request.signal })
    return called instanceof Promise ? called.then(() => RESULT) : RESULT
  }
  const config = toConfig(ledger, run)
  const observer = createRunningObserver(config, () => 0n, {
    database,
    clock,
    delivering,
    definitions: undefined,
    env: {},
    record: () => undefined,
    measure: () => {},
    alerts: { afterDeath: () => undefined, raise: async () => {} },
  })
  const first = (event: AnyEvent, owner: string) => ledger.begins(event, termOf(), process.name, false, owner)
  const actions = observer.actions.map((action) => ({
    ...action,
    act: (...asked: Parameters<typeof action.act>) => {
      begin = first
      return action.act(...asked)
    },
  }))
  for (const { work } of actions) {
    delivering.register({
      ...work,
      run: (delivery, context: RunContext) => {
        begin = (event, owner) => ledger.actions.later(event, owner, context.claim!, process.name)
        return work.run(delivery, context)
      },
    })
  }
  const reactions = delivering.reactions()
  const executor = createExecutor([{ ...observer, actions }], {
    env: {},
    reactions,
    count: () => {},
    clock,
    logger: silentLogger,
    tellsDetails: false,
    recordsAll: false,
    measure: () => {},
  })
  return { delivering, processLease, executor, begin: () => reactions.begin() }
}

function toConfig({ plan }: Ledger, run: (owner: string) => (request: ActionRequest) => unknown): ObserverConfig {
  const actions = Array.from({ length: plan.actions }, (_, n) => ({
    name: String(n + 1),
    type: 'simulated',
    config: {},
    retry: RETRY,
    prepared: { destination: null, timeoutMs: TIMEOUT_MS, run: run(ownerOf(plan, n + 1)) },
  }))
  const config = {
    name: plan.id,
    on: ['*'],
    entity: null,
    condition: null,
    actions,
    onFailure: 'dlq',
    enabled: true,
    sequential: false,
    orderBy: plan.isOrdered ? 'aggregate' : null,
    concurrency: null,
    rate: null,
    timeoutMs: null,
    strict: false,
    hash: '',
    compiled: { condition: null, orderBy: null },
  }
  return config as unknown as ObserverConfig
}

const RESULT = { actionType: 'simulated', success: true, message: 'done', durationMs: 0 } as const
