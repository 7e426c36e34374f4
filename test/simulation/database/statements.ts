/** Which statement a text is. A text that no statement is known for ends the run: the simulation must learn it first. */
import type { Parameter } from '../../../src/postgres/index.ts'
import { LEASES } from './leases.ts'
import { LETTERS } from './letters.ts'
import { SAVES } from './saves.ts'
import type { Store } from './store.ts'

export interface Answer {
  readonly rows: Record<string, unknown>[]
  readonly rowCount: number
}

export interface Statement {
  /** What the text of this statement contains, written on one line, and no other. */
  readonly says: RegExp
  /** Some errors have to do with what a statement writes. */
  readonly writes?: boolean
  run(store: Store, values: readonly Parameter[]): Answer
}

const ALL: Readonly<Record<string, Statement>> = { ...LEASES, ...SAVES, ...LETTERS }

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
  byText.set(text, named)
  return named
}
