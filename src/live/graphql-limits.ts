/**
 * Limits of an operation beyond the length of its text: few aliases and little depth, judged once, and the size of each answer,
 * judged for each event. A kilobyte of aliases would turn an event of a megabyte into an answer of hundreds.
 */
import type { DocumentNode, FragmentDefinitionNode, OperationDefinitionNode, SelectionSetNode } from 'graphql'

/** The query by which tools read a schema nests 15 levels. */
const MAX_DEPTH = 20
const MAX_ALIASES = 10

/** Undefined: fine. Of a document that is valid, so fragments lead in no circle. */
export function operationProblem({ definitions }: DocumentNode): string | undefined {
  const fragments = new Map(
    definitions.flatMap((one) => (one.kind === 'FragmentDefinition' ? [[one.name.value, one] as const] : [])),
  )
  const depths = new Map<SelectionSetNode, number>()
  let aliases = 0

  /** Every set is gone through once, however often its fragment is spread. */
  function depthOf(set: SelectionSetNode | undefined): number {
    if (set === undefined) return 0
    const known = depths.get(set)
    if (known !== undefined) return known
    let deepest = 0
    for (const selection of set.selections) {
      if (selection.kind === 'Field' && selection.alias !== undefined) aliases++
      const inside = selection.kind === 'FragmentSpread' ? fragments.get(selection.name.value) : selection
      deepest = Math.max(deepest, depthOf(inside?.selectionSet))
    }
    depths.set(set, deepest + 1)
    return deepest + 1
  }

  const depth = Math.max(...definitions.map((one) => ('selectionSet' in one ? depthOf(one.selectionSet) : 0)))
  if (depth > MAX_DEPTH) return `An operation nests at most ${MAX_DEPTH} levels.`
  return aliases > MAX_ALIASES ? `An operation has at most ${MAX_ALIASES} aliases.` : undefined
}

/** How often each field of an event is in the answer: under its own name and under each alias. */
export type Copies = ReadonlyMap<string, number>

export function copiesOf(
  { selectionSet }: OperationDefinitionNode,
  fragments: Readonly<Record<string, FragmentDefinitionNode>>,
): Copies {
  const answered = new Map<string, string>()
  const spread = new Set<string>()
  const visit = (set: SelectionSetNode): void => {
    for (const selection of set.selections) {
      if (selection.kind === 'Field') {
        if (selection.selectionSet === undefined)
          answered.set((selection.alias ?? selection.name).value, selection.name.value)
        else visit(selection.selectionSet)
      } else if (selection.kind === 'InlineFragment') visit(selection.selectionSet)
      else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value)
        visit(fragments[selection.name.value]!.selectionSet)
      }
    }
  }
  visit(selectionSet)
  const copies = new Map<string, number>()
  for (const field of answered.values()) copies.set(field, (copies.get(field) ?? 0) + 1)
  return copies
}
