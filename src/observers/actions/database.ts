/** `type = "database"`: calls an SQL function of the database with the event as jsonb, in a transaction of its own. */
import { z } from 'zod'
import { stringifyJson, toWire } from '../../events/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import { classify, quoteIdentifier, SQLSTATE, sqlstateOf } from '../../postgres/index.ts'
import { causedBy, isHopeless } from '../../subscriptions/index.ts'
import type { ActionContext, ActionType, PreparedAction } from '../action.ts'
import { ObserverError } from '../observer-error.ts'
import { rendering } from './rendering.ts'

const schema = z.strictObject({
  function: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/, {
      message:
        'must be the plain name of a function, such as notify_billing or billing.notify: no arguments, no quotes',
    })
    .describe('takes one jsonb; what it returns is not looked at'),
})

type DatabaseConfig = z.infer<typeof schema>

export const database: ActionType<DatabaseConfig> = { type: 'database', schema, defaultRetry: 'local', prepare }

const STATEMENT_TIMEOUT_MS = 30_000

function prepare(config: DatabaseConfig, { database: db, clock }: ActionContext): PreparedAction {
  const name = config.function
  const quoted = name.split('.').map(quoteIdentifier).join('.')
  const call = `select ${quoted}(($1::text)::jsonb)`
  // The server looks the function up and checks the right to it when the statement begins; `limit 0` never calls it.
  const look = `select ${quoted}(pg_catalog.to_jsonb(relname)) from pg_catalog.pg_class limit 0`
  const what = `The call of the SQL function ${name}`
  const toArgument = (event: AnyEvent) => rendering(what, () => stringifyJson(toWire(event), LIMITS))

  return {
    destination: null,
    singleAttempt: false,
    async lacks() {
      try {
        await db.transaction((tx) => tx.query(look), { readOnly: true, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
      } catch (error) {
        const reason = ABSENT.get(sqlstateOf(error) ?? '')
        if (reason === undefined) throw error
        return `The SQL function ${name} cannot be called: ${reason}`
      }
      return undefined
    },
    async run({ event, signal }) {
      const began = clock.monotonic()
      const argument = toArgument(event)
      try {
        const options = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, signal }
        await causedBy(event, () => db.transaction((tx) => tx.query(call, [argument]), options))
      } catch (error) {
        throw signal.aborted ? error : failed(what, error)
      }
      return { actionType: 'database', success: true, message: `called ${name}`, durationMs: clock.monotonic() - began }
    },
    preview: ({ event }) => {
      return { actionType: 'database', destination: null, content: { function: name, argument: toArgument(event) } }
    },
  }
}

const LIMITS = { maxBytes: 64 * 1_048_576, maxDepth: 1_000, name: 'event' }

/** Postgres quotes values in its messages, so only the state is told; the rest is in `cause`. */
function failed(what: string, error: unknown): ObserverError {
  const state = sqlstateOf(error)
  const isWrong = state !== undefined && classify(error) === 'permanent' && HOPELESS.has(state.slice(0, 2))
  const transient = !isWrong && !isHopeless(error)
  const said = state === undefined ? 'without an answer of the database' : `with SQLSTATE ${state}`
  const absent = ABSENT.get(state ?? '')
  const advice = transient
    ? 'It is tried again as configured.'
    : `It is not tried again. ${absent ?? 'Correct the function.'} Then redrive the dead letter.`
  return new ObserverError('OB011', `${what} failed ${said}. ${advice}`, { transient, cause: error })
}

/** Wrong data, wrong names, missing features: these stay wrong. A constraint or a raised exception may pass later. */
const HOPELESS: ReadonlySet<string> = new Set(['0A', '21', '22', '3F', '42'])
const ABSENT: ReadonlyMap<string, string> = new Map([
  ['42883', 'there is no such function that takes one jsonb. Create it.'],
  [SQLSTATE.undefinedSchema, 'there is no such schema. Create it and the function.'],
  ['42809', 'it is no function. Create a function that takes one jsonb.'],
  [
    SQLSTATE.insufficientPrivilege,
    'this role lacks the right to it. Grant USAGE on the schema and EXECUTE on the function.',
  ],
])
