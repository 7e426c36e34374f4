/** Which statement a text is. A text that no statement is known for ends the run: the simulation must learn it first. */
import type { Parameter } from '../../../src/postgres/index.ts'
import { CLAIMS } from './claims.ts'
import { LEASES } from './leases.ts'
import { LETTERS } from './letters.ts'
import { PROCESSES } from './processes.ts'
import { SAVES } from './saves.ts'
import type { Store } from './store.ts'
import { WORKERS } from './workers.ts'

export interface Answer {
  readonly rows: Record<string, unknown>[]
  readonly rowCount: number
  /** What it writes, where that is to be seen only once its transaction is committed. */
  readonly commit?: () => void
  /** Its transaction is rolled back. */
  readonly rollBack?: () => void
}

export interface Statement {
  /** What the text of this statement contains, written on one line, and no other. */
  readonly says: RegExp
  /** Its text differs from call to call. */
  readonly varies?: boolean
  /** It waits for transactions that have rows of work locked. */
  readonly waits?: boolean
  run(store: Store, values: readonly Parameter[], text: string): Answer
}

const ALL: Readonly<Record<string, Statement>> = {
  ...PROCESSES,
  ...LEASES,
  ...SAVES,
  ...LETTERS,
  ...CLAIMS,
  ...WORKERS,
}

export interface NamedStatement extends Statement {
  readonly name: string
}

const byText = new Map<string, NamedStatement>()

export function statementOf(text: string): NamedStatement {
  const known = byText.get(text)
  if (known) return known
  const line = text.replace(/\s+/g, ' ').trim()
  const found = Object.entries(ALL).filter(([, { says }]) => says.test(line))
  if (found.length !== 1) {
    const names = found.map(([name]) => name).join(', ')
    throw new Error(
      `The simulated database knows ${found.length === 0 ? 'no statement' : `several statements (${names})`} for this text. ` +
        `Teach it in test/simulation/database/:\n${text}`,
    )
  }
  const [name, statement] = found[0]!
  const named = { name, ...statement }
  if (!statement.varies) byText.set(text, named)
  return named
}
