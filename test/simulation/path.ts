/** The path between one process and the database: where questions and answers are late, lost or refused. */
import type { Database, Parameter, Queryable, QueryResult } from '../../src/postgres/index.ts'
import { sqlError } from './database/answers.ts'
import { type NamedStatement, statementOf } from './database/statements.ts'
import type { Store } from './database/store.ts'
import type { PathPlan } from './plan.ts'
import type { Process } from './process.ts'

const TRANSIENT = ['53200', '40001', '57014', '55P03', '53300'] as const
/** A client gives up after this long without an answer. */
const QUERY_TIMEOUT_MS = 60_000

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
  readonly commits = { work: 0, answered: 0 }

  constructor(parts: PathParts) {
    this.#parts = parts
  }

  /** As the code under test sees the database. */
  get database(): Database {
    const query: Queryable['query'] = <Row>(text: string, values: readonly Parameter[] = []) =>
      this.#query(statementOf(text), values) as Promise<QueryResult<Row>>
    const pool = { schema: 'db', query }
    const database = { ...pool, control: pool, commits: this.commits, clock: this.#parts.process.clock }
    return database as unknown as Database
  }

  #query(statement: NamedStatement, values: readonly Parameter[]): Promise<unknown> {
    const { store, process } = this.#parts
    return this.ask(() => {
      const answer = statement.run(store, values)
      process.world.note(() => `${process.name}: ${statement.name} ${shorten(values)} → ${JSON.stringify(answer.rows)}`)
      return answer
    })
  }

  /** Asks the server. `execute` happens there, at one moment, or never. */
  ask<T>(execute: () => T): Promise<T> {
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
      const executeAfter = (ms: number) => {
        question.forget = world.after(ms, () => {
          question.isExecuted = true
          try {
            answer = execute()
          } catch (thrown) {
            error = thrown
          }
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
        executeAfter(takesMs + random.pick([1, 100, 10_000]) * random.next())
        rejectAfter(random.chance(0.1) ? QUERY_TIMEOUT_MS : takesMs, lost())
      } else if (roll < lostQuestions + lostAnswers + late + refused) {
        rejectAfter(takesMs, sqlError(random.pick(TRANSIENT), 'the server refused this time'))
      } else {
        executeAfter(takesMs / 2)
        process.after(takesMs, () => {
          if (!this.#open.delete(question)) return
          if (error !== undefined) return reject(error)
          this.commits.answered++
          resolve(answer as T)
        })
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
