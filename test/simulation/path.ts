/** The path between one process and the database: where questions and answers are late, lost or refused. */
import {
  type Database,
  OutcomeUnknownError,
  type Parameter,
  type Queryable,
  type QueryResult,
  sqlstateOf,
  type Transaction,
} from '../../src/postgres/index.ts'
import { sqlError } from './database/answers.ts'
import { type Answer, statementOf } from './database/statements.ts'
import type { Store } from './database/store.ts'
import type { PathPlan } from './plan.ts'
import type { Process } from './process.ts'

const TRANSIENT = ['53200', '40001', '57014', '55P03', '53300'] as const
/** A client gives up after this long without an answer. */
const QUERY_TIMEOUT_MS = 60_000
/** A statement that the server executes late is executed within this time. */
const LATEST_MS = 10_000

/** A statement looks again after this long whether a lock is free. */
const LOCKED_MS = 5

type Work = (tx: Transaction) => Promise<unknown>

interface OpenTransaction {
  isOpen: boolean
  readonly answers: Answer[]
}

interface Question {
  isExecuted: boolean
  /** The server forgets it, if it has not executed it. */
  forget(): void
  reject(error: Error): void
}

export interface PathParts {
  readonly process: Process
  readonly store: Store
  readonly plan: PathPlan
  /** No faults any more. */
  readonly isHealed: () => boolean
  readonly kill: (process: Process) => void
}

export class Path {
  readonly #parts: PathParts
  readonly #open = new Set<Question>()
  readonly #transactions = new Set<() => void>()
  readonly commits = { work: 0, answered: 0 }

  constructor(parts: PathParts) {
    this.#parts = parts
  }

  /** As the code under test sees the database. */
  get database(): Database {
    const query: Queryable['query'] = <Row>(text: string, values: readonly Parameter[] = []) =>
      this.#query(text, values) as Promise<QueryResult<Row>>
    const pool = { schema: 'db', query, transaction: (work: Work) => this.#transaction(work) }
    const { clock } = this.#parts.process
    const database = {
      ...pool,
      control: pool,
      commits: this.commits,
      clock,
      schemaName: { channel: 'db' },
      distrust() {},
    }
    return database as unknown as Database
  }

  #query(text: string, values: readonly Parameter[], tx?: OpenTransaction): Promise<unknown> {
    const { store, process } = this.#parts
    const statement = statementOf(text)
    const mustWait = () => statement.waits === true && store.isLockedFor(tx)
    const execute = () => {
      if (tx && !tx.isOpen) throw lost()
      const answer = statement.run(store, values, text)
      if (tx) {
        tx.answers.push(answer)
        if (answer.rollBack) store.locking.add(tx)
      } else answer.commit?.()
      process.world.note(() => `${process.name}: ${statement.name} ${shorten(values)} → ${JSON.stringify(answer.rows)}`)
      return answer
    }
    return this.ask(execute, mustWait)
  }

  /** What its statements write is to be seen once it is committed. Until then it keeps its rows locked. */
  async #transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { process, store } = this.#parts
    const open: OpenTransaction = { isOpen: true, answers: [] }
    const rollBack = () => {
      if (!open.isOpen) return
      open.isOpen = false
      store.locking.delete(open)
      for (const answer of open.answers) answer.rollBack?.()
    }
    this.#transactions.add(rollBack)
    try {
      const result = await work({
        schema: 'db',
        query: (text: string, values: readonly Parameter[] = []) => this.#query(text, values, open),
      } as unknown as Transaction)
      await this.ask(() => {
        if (!open.isOpen) throw lost()
        open.isOpen = false
        store.locking.delete(open)
        for (const answer of open.answers) answer.commit?.()
      }).catch((error) => {
        // The server waits for a COMMIT that is on its way; after that the transaction is over.
        process.world.after(LATEST_MS, rollBack)
        throw sqlstateOf(error) === undefined ? new OutcomeUnknownError(error) : error
      })
      return result
    } catch (error) {
      if (!(error instanceof OutcomeUnknownError)) process.world.after(0, rollBack)
      throw error
    } finally {
      this.#transactions.delete(rollBack)
    }
  }

  /** Asks the server. `execute` happens there, at one moment, or never, and not while it must wait for a lock. */
  ask<T>(execute: () => T, mustWait = () => false): Promise<T> {
    const { process, store, plan, isHealed, kill } = this.#parts
    const { world } = process
    const { random } = world
    if (!process.isDead && !isHealed() && random.chance(plan.deadly)) kill(process)
    if (process.isDead) return new Promise(() => {})
    return new Promise((resolve, reject) => {
      if (!store.isUp || world.now < process.cutUntil) {
        process.after(random.between(0, 2), () => reject(lost('connect ECONNREFUSED', 'ECONNREFUSED')))
        return
      }
      const question: Question = {
        isExecuted: false,
        forget() {},
        reject: (error) => {
          if (this.#open.delete(question)) reject(error)
        },
      }
      this.#open.add(question)
      const takesMs = this.#latency()
      let answer: T | undefined
      let error: unknown
      const executeAfter = (ms: number, then = () => {}) => {
        question.forget = world.after(ms, () => {
          if (mustWait()) return executeAfter(LOCKED_MS, then)
          question.isExecuted = true
          try {
            answer = execute()
          } catch (thrown) {
            error = thrown
          }
          then()
        })
      }
      const rejectAfter = (ms: number, why: Error) => process.after(ms, () => question.reject(why))
      const roll = isHealed() ? 1 : random.next()
      const { lostQuestions, lostAnswers, late, refused } = plan
      if (roll < lostQuestions) {
        rejectAfter(takesMs, lost())
      } else if (roll < lostQuestions + lostAnswers) {
        executeAfter(takesMs / 2)
        rejectAfter(takesMs, lost())
      } else if (roll < lostQuestions + lostAnswers + late) {
        executeAfter(takesMs + random.pick([1, 100, LATEST_MS]) * random.next())
        rejectAfter(random.chance(0.1) ? QUERY_TIMEOUT_MS : takesMs, lost())
      } else if (roll < lostQuestions + lostAnswers + late + refused) {
        rejectAfter(takesMs, sqlError(random.pick(TRANSIENT), 'the server refused this time'))
      } else {
        const hear = () => {
          if (!this.#open.delete(question)) return
          if (error !== undefined) return reject(error)
          this.commits.answered++
          resolve(answer as T)
        }
        executeAfter(takesMs / 2, () => process.after(takesMs / 2, hear))
      }
    })
  }

  /** Every connection of the process is lost. `mayExecute`: what the server has received it may still execute. */
  cut(mayExecute: boolean): void {
    const { process } = this.#parts
    for (const question of [...this.#open]) {
      if (!question.isExecuted && (!mayExecute || process.world.random.chance(0.5))) question.forget()
      process.after(process.world.random.between(0, 5), () => question.reject(lost()))
    }
    for (const rollBack of [...this.#transactions]) process.world.after(LATEST_MS, rollBack)
  }

  #latency(): number {
    const { process, plan, isHealed } = this.#parts
    const { random } = process.world
    const slowMs = !isHealed() && random.chance(0.05) ? random.next() * plan.jitterMs : 0
    return plan.latencyMs * random.between(0.5, 1.5) + slowMs
  }
}

function lost(message = 'read ECONNRESET', code = 'ECONNRESET'): Error {
  return Object.assign(new Error(message), { code })
}

function shorten(values: readonly Parameter[]): string {
  const text = JSON.stringify(values)
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
