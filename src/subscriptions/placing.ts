/** Registering a definition in the database: where a new subscription begins, and which generation a known one has. */
import { findPosition, settledPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { type Definition, definitionText } from './definition.ts'
import { hasSubscription, registerSubscription } from './statements.ts'

export interface Placed {
  readonly generation: bigint
  readonly isNew: boolean
  /** Where a new subscription begins. */
  readonly position: bigint
}

export async function placeDefinition(database: Database, definition: Definition): Promise<Placed> {
  const { id, kind, from } = definition
  const db = database.control
  const position = (await hasSubscription(db, id)) ? 0n : await findPosition(db, from, await settledPosition(database))
  const placed = await registerSubscription(db, { id, kind, definition: definitionText(definition), position })
  return { ...placed, position }
}
